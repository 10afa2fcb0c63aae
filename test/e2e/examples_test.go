// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import "testing"

// An example that the API server refuses is worse than none.
func TestTheExamplesAreAccepted(t *testing.T) {
	for _, file := range []string{"examples/guard.yaml", "examples/platform.yaml"} {
		t.Run(file, func(t *testing.T) {
			if _, err := cluster.Kubectl(t.Context(), "apply", "--dry-run=server", "--validate=strict", "-f", file); err != nil {
				t.Error(err)
			}
		})
	}
}

// Policies that do not type-check fail at run time; only a controller manager checks them.
func TestThePoliciesTypeCheck(t *testing.T) {
	out, err := cluster.Kubectl(t.Context(), "get", "validatingadmissionpolicies",
		"plumbline-stamp-status", "plumbline-requested-by", "plumbline-baseline-writers",
		"-o", `jsonpath={range .items[*]}{.metadata.name}{.status.typeChecking.expressionWarnings}{"\n"}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	if want := "plumbline-stamp-status\nplumbline-requested-by\nplumbline-baseline-writers\n"; out != want {
		t.Errorf("type checking found warnings:\n%s", out)
	}
}
