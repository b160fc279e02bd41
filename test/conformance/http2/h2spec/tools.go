//go:build tools

// Package tools names h2spec, so that go.mod and go.sum pin it and all that it needs.
package tools

import _ "github.com/summerwind/h2spec/cmd/h2spec"
