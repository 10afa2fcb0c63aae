// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"strings"
)

// newBudget bounds, by stage, the seconds that the tests of a new capability may take.
// A capability over it is a hint: the tests of the next one shall not become as slow.
var newBudget = map[string]float64{"unit": 30, "integration": 60, "floods": 30, "e2e": 60}

// capability is something that users can adopt alone, with the folders of its packages.
type capability struct {
	name    string
	folders []string
}

// capabilities maps packages to capabilities. What several capabilities share, such as
// cmd and the harness, belongs to none.
var capabilities = []capability{
	{"guard", []string{
		"internal/adopt", "internal/certs", "internal/assessor", "internal/checks", "internal/controller/baseline", "internal/selftest",
		"internal/failopen", "internal/controller/guard", "internal/controller/guarddefaults", "internal/guards", "internal/guarddefaults", "internal/stamp",
		"internal/controller/report", "pkg/report", "pkg/specguard",
		"test/integration/admission", "test/integration/assess", "test/integration/attacks", "test/integration/deny",
		"test/integration/faults", "test/integration/policies",
	}},
	{"remediation", []string{
		"internal/controller/environment", "internal/environment", "internal/executor", "internal/notifier", "internal/controller/plan",
		"internal/controller/policy", "internal/evidencehttp", "internal/planning",
		"pkg/remediate",
		"test/integration/execute", "test/integration/executorfaults", "test/integration/redisguard", "test/integration/remediate", "test/sim",
	}},
	{"mesh", []string{
		"cmd/xds", "internal/controller/abrelease", "internal/controller/releasework", "internal/connector", "internal/discovery/authority", "internal/discovery", "internal/proxieshttp",
		"pkg/traffic", "hack/xdsload",
		"test/integration/abrelease", "test/integration/ads", "test/integration/envoyxds", "test/integration/haproxy", "test/integration/nginx", "test/integration/identity", "test/integration/inject",
		"test/integration/injection", "test/integration/mesh", "test/integration/redirect", "test/integration/releasework", "test/integration/replicas",
		"test/integration/signals", "test/integration/traefik", "test/integration/xds",
	}},
}

// shared is the name for what belongs to no capability.
const shared = "shared"

// capabilityOf finds the capability of a package.
func capabilityOf(name string) string {
	for _, c := range capabilities {
		for _, folder := range c.folders {
			if name == folder || strings.HasPrefix(name, folder+"/") {
				return c.name
			}
		}
	}
	return shared
}

// share is what the packages of a capability took.
type share struct {
	Capability string
	Seconds    float64
	Over       bool
}

func shares(stage string, packages []packageTime) (all []share) {
	total := map[string]float64{}
	for _, p := range packages {
		if !p.Cached {
			total[capabilityOf(p.Name)] += p.Seconds
		}
	}
	for _, name := range slices.Sorted(maps.Keys(total)) {
		all = append(all, share{name, total[name], name != shared && total[name] > newBudget[stage]})
	}
	return all
}
