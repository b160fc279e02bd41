# frozen_string_literal: true

public_dir "public"
sendfile_root "/internal/=reports"
