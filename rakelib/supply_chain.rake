# frozen_string_literal: true

desc "Check the dependencies, and that builds can be reproduced (bin/supply-chain)"
task(:supply_chain) { sh "bin/supply-chain" }

namespace :supply_chain do
  desc "Write the software bills of materials (SBOM) of the gems for one platform, or for all, into pkg"
  task :sbom, [:platform] do |_, arguments|
    require_relative "supply_chain/bill_of_materials"
    mkdir_p Packaging::PACKAGES, verbose: false
    Packaging::Platform.find(arguments[:platform]).each do |platform|
      SupplyChain::BillOfMaterials.of(platform).each do |name, bill|
        File.write(File.join(Packaging::PACKAGES, name), bill.to_s)
        puts "pkg/#{name}"
      end
    end
  end
end
