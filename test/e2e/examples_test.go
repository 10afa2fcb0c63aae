// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness"
)

// examplesAreAccepted: one that the API server refuses is worse than none.
func examplesAreAccepted(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"examples/guard.yaml", "examples/deny.yaml", "examples/platform.yaml", "examples/remediation.yaml", "examples/release.yaml", "examples/api-ingress.yaml"} {
		t.Run(file, func(t *testing.T) {
			if _, err := cluster.Kubectl(t.Context(), "apply", "--dry-run=server", "--validate=strict", "-f", file); err != nil {
				t.Error(err)
			}
		})
	}
}

// policiesTypeCheck: what does not fails at run time; only a controller manager checks it.
func policiesTypeCheck(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"plumbline-stamp-status", "plumbline-requested-by", "plumbline-baseline-writers", "plumbline-deny"} {
		t.Run(policy, func(t *testing.T) {
			var warnings string
			err := harness.Eventually(t.Context(), "the type check of "+policy, patience, func(ctx context.Context) (bool, string) {
				out, err := cluster.Kubectl(ctx, "get", "validatingadmissionpolicy", policy, "-o",
					`jsonpath={.metadata.generation} {.status.observedGeneration} {.status.typeChecking.expressionWarnings}`)
				if err != nil {
					return false, err.Error()
				}
				generation, rest, _ := strings.Cut(out, " ")
				observed, found, _ := strings.Cut(rest, " ")
				warnings = found
				return generation == observed, out
			})
			if err != nil {
				t.Fatal(err)
			}
			if warnings != "" {
				t.Errorf("type checking found: %s", warnings)
			}
		})
	}
}
