# frozen_string_literal: true

require "cgi"

module Bench
  module Plot
    # Writes SVG by hand. The drawing has its own background, so that it is readable on any page; both follow the
    # reader's light or dark scheme.
    class Svg
      STYLE = <<~CSS
        text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; font-size: 13px; fill: #1f2328; }
        .card { fill: #ffffff; stroke: #d1d9e0; }
        .title { font-size: 17px; font-weight: 600; }
        .panel { font-weight: 600; }
        .soft { fill: #59636e; font-size: 12px; }
        .strong { font-weight: 600; }
        .grid { stroke: #d1d9e0; stroke-width: 1; }
        .mark { stroke: #59636e; stroke-width: 1; stroke-dasharray: 4 3; }
        .spread { stroke: #1f2328; stroke-width: 1.5; }
        @media (prefers-color-scheme: dark) {
          text { fill: #e6edf3; }
          .card { fill: #0d1117; stroke: #3d444d; }
          .soft { fill: #9198a1; }
          .grid { stroke: #2a313c; }
          .mark { stroke: #9198a1; }
          .spread { stroke: #e6edf3; }
        }
      CSS

      def initialize(width, height, title)
        @width = width
        @height = height
        @title = title
        @parts = []
      end

      def text(x, y, content, anchor: "start", css: nil, fill: nil)
        style = fill ? { style: "fill:#{fill}" } : {}
        element("text", x: x, y: y, "text-anchor": anchor, class: css, **style) { CGI.escapeHTML(content) }
      end

      def line(x1, y1, x2, y2, css)
        element("line", x1: x1, y1: y1, x2: x2, y2: y2, class: css)
      end

      def bar(x, y, width, height, fill, opacity: 1)
        element("rect", x: x, y: y, width: [width, 1].max, height: height, rx: 2, fill: fill, "fill-opacity": opacity)
      end

      def dot(x, y, radius, fill, opacity: 1)
        element("circle", cx: x, cy: y, r: radius, fill: fill, "fill-opacity": opacity)
      end

      def curve(points, stroke, width: 2, dashes: nil)
        path = points.map { |x, y| "#{number(x)},#{number(y)}" }.join(" ")
        element("polyline", points: path, fill: "none", stroke: stroke, "stroke-width": width, "stroke-linejoin": "round", "stroke-dasharray": dashes)
      end

      def to_s
        <<~SVG
          <svg xmlns="http://www.w3.org/2000/svg" width="#{@width}" height="#{@height}" viewBox="0 0 #{@width} #{@height}" role="img" aria-label="#{CGI.escapeHTML(@title)}">
          <style>
          #{STYLE.chomp}
          </style>
          <rect class="card" x="0.5" y="0.5" width="#{@width - 1}" height="#{@height - 1}" rx="8"/>
          #{@parts.join("\n")}
          </svg>
        SVG
      end

      private

      def element(name, **attributes)
        written = attributes.compact.map { |key, value| %(#{key}="#{value.is_a?(Numeric) ? number(value) : value}") }.join(" ")
        @parts << (block_given? ? "<#{name} #{written}>#{yield}</#{name}>" : "<#{name} #{written}/>")
      end

      def number(value)
        value.round(1).to_s.delete_suffix(".0")
      end
    end
  end
end
