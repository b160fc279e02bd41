# frozen_string_literal: true

module Fairlead
  class Configuration
    # Rewrites the text of a configuration file for Puma into an equivalent one for Fairlead: calls get our names, and calls
    # without effect become comments with the reason. Everything else (conditions, expressions, comments) stays as it is.
    class Migration
      Node = RubyVM::AbstractSyntaxTree::Node

      # No call in these is a call of the file's methods.
      ELSEWHERE = %i[CLASS MODULE SCLASS].freeze

      # Methods that are kept with a note, because the difference may matter to users who have set them.
      NOTED = {
        first_data_timeout: "limits the whole head (slow drips too), and how long a body may make no progress",
        force_shutdown_after: "`:forever` changes nothing: requests are never waited for without a limit",
        load: "reads the other file at once, and as it is",
        worker_shutdown_timeout: "also applies without workers, where Puma waits for ever"
      }.freeze

      NEEDLESS = /\Apuma\/daemon\z/
      MAGIC = /\A#(?:!| *-\*-|.*\b(?:frozen_string_literal|coding|encoding|warn_indent): )/
      WIDTH = 118

      # The receiver of a block or a method is unknown.
      LATER = %i[LAMBDA DEFN DEFS].freeze

      # Warnings about calls of methods that neither Puma nor Fairlead has.
      attr_reader :warnings

      # +path+: the name of the file, for the first line and for messages.
      def initialize(text, path)
        @path = path
        @text = TextEdits.new(text)
        @warnings = []
        @later = 0
        root = parse(text)
        @defined = defined_in(root)
        @text.insert_before(first_line, ["# Made from #{path} by `fairlead migrate`.", ""])
        visit(root, nil)
      end

      # The text for Fairlead.
      def to_s = @text.to_s.tap { |text| parse(text) }

      private

      def parse(text)
        RubyVM::AbstractSyntaxTree.parse(text)
      rescue SyntaxError => e
        raise ConfigurationError, [ConfigurationError::Problem.new(nil, @path, "cannot be rewritten: #{e.message.strip}")]
      end

      def first_line = @text.lines.index { |line| !line.match?(MAGIC) }.to_i + 1

      # +statement+: the node around this one that becomes a comment together with it: `call if condition`, `call do … end`.
      def visit(node, statement)
        return if !node.is_a?(Node) || ELSEWHERE.include?(node.type)

        case node.type
        when :IF, :UNLESS then visit_condition(node)
        when :ITER then visit_call_with_block(node, statement)
        when :FCALL, :VCALL then visit_call(node, statement || node)
        when :CONST then @text.replace(node, "\"config.ru\"") if node.children.first == :DefaultRackup
        when *LATER then later { node.children.each { |child| visit(child, nil) } }
        else node.children.each { |child| visit(child, nil) }
        end
      end

      # `call if condition` starts where the call starts.
      def visit_condition(node)
        condition, body, otherwise = node.children
        modifier = otherwise.nil? && body && TextEdits.start(body) == TextEdits.start(node)
        visit(condition, nil)
        visit(body, modifier ? node : nil)
        visit(otherwise, nil)
      end

      def visit_call_with_block(node, statement)
        call, block = node.children
        visit(call, statement || node)
        later { visit(block, nil) }
      end

      def later
        @later += 1
        yield
      ensure
        @later -= 1
      end

      def visit_call(node, statement)
        name, arguments = node.children
        return if without_effect(name, arguments, statement)

        warn_of(node, name) unless @later.positive? || known?(name)
        rename(node, name, arguments)
        visit(arguments, nil)
      end

      # True if the call has become a comment.
      def without_effect(name, arguments, statement)
        reason = reason_for(name, arguments) or return
        @text.comment_out(statement, wrap(reason))
      end

      def reason_for(name, arguments)
        return "Fairlead has no such warning." if name == :silence_single_worker_warning
        return "It would start Puma." if name == :restart_command && Layer::STARTS_PUMA.match?(literal(arguments))
        return "Fairlead needs none of Puma." if name == :require && NEEDLESS.match?(literal(arguments))

        entry = Accepted[name]
        "#{name} has no effect: #{entry.instead}." if entry
      end

      def rename(node, name, arguments)
        return negate(node, arguments) if name == :quiet

        note(node, "#{name} #{NOTED[name]}") if NOTED.key?(name)
        new = Hooks::ALIASES[name] || Options[name]&.name
        @text.replace_name(node, name, new) if new && new != name
      end

      # A plugin may have its own methods.
      def known?(name)
        Script.method_defined?(name) || Script.private_method_defined?(name) || @defined.include?(name) || @defined.include?(:plugin)
      end

      def warn_of(node, name)
        guess = Script.guess(name)
        text = "#{@path}:#{node.first_lineno}: #{name} is unknown to Puma and Fairlead, and stays as it is"
        @warnings << (guess ? "#{text}; did you mean #{guess}?" : text)
      end

      # The methods that the file defines, and :plugin if it has a plugin that is not built in.
      def defined_in(node)
        return [] unless node.is_a?(Node)
        return [node.children.first, *node.children.drop(1).flat_map { |child| defined_in(child) }] if node.type == :DEFN
        return [:plugin] if node.type == :FCALL && node.children.first == :plugin && !built_in?(node.children.last)

        node.children.flat_map { |child| defined_in(child) }
      end

      def built_in?(arguments)
        first = arguments.is_a?(Node) ? arguments.children.first : nil
        first.is_a?(Node) && Plugins::BUILT_IN.include?(first.children.first.to_s)
      end

      def note(node, text) = @text.insert_before(node.first_lineno, wrap("#{text}."), like: node)

      # Puma's `quiet` means that requests are not logged.
      def negate(node, arguments)
        value = arguments && @text.of(arguments)
        opposite = { nil => "false", "true" => "false", "false" => "true" }.fetch(value) { "!(#{value})" }
        @text.replace(node, "log_requests #{opposite}")
      end

      # The text of a single argument that is a String.
      def literal(arguments)
        node = arguments.is_a?(Node) && arguments.type == :LIST ? arguments.children.first : nil
        node.is_a?(Node) && node.type == :STR ? node.children.first : ""
      end

      def wrap(text) = text.scan(/\S.{0,#{WIDTH - 2}}(?=\s|\z)/).map { |line| "# #{line}" }
    end
  end
end
