# frozen_string_literal: true

desc "Check the dependencies, and that builds can be reproduced (bin/supply-chain)"
task(:supply_chain) { sh "bin/supply-chain" }

namespace :supply_chain do
  desc "Write pkg/fairlead-VERSION.cdx.json, the software bill of materials (SBOM), for this machine's target or TARGET"
  task :sbom do
    require_relative "supply_chain/bill_of_materials"
    target = ENV["TARGET"] || `rustc --version --verbose`[/^host: (.+)/, 1]
    bill = SupplyChain::BillOfMaterials.new(target)
    mkdir_p "pkg", verbose: false
    path = "pkg/fairlead-#{Gem::Specification.load("fairlead.gemspec").version}-#{target}.cdx.json"
    File.write(path, bill.to_s)
    puts path
  end
end
