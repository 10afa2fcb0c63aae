// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness"
)

// TestHelmTestUpgradeUninstallReinstall takes Plumbline away. Go runs tests in the order
// of files: the name of this one puts it last.
func TestHelmTestUpgradeUninstallReinstall(t *testing.T) {
	ctx := t.Context()
	helm := func(args ...string) string {
		t.Helper()
		result, err := cluster.Run(ctx, append(append([]string{"helm"}, args...), "-n", systemNamespace))
		if err != nil {
			t.Fatal(err)
		}
		return result.Output()
	}
	helm("test", "plumbline", "--timeout=2m")
	helm("upgrade", "plumbline", "charts/plumbline", "--reuse-values", "--set", "log.level=debug", "--wait", "--timeout=3m")
	helm("test", "plumbline", "--timeout=2m")

	before := strays(ctx, t)
	if len(before) == 0 {
		t.Fatal("the list of our objects is empty while installed: the check cannot fail")
	}
	helm("uninstall", "plumbline", "--wait", "--timeout=2m")
	err := harness.Eventually(ctx, "no stray object", patience, func(ctx context.Context) (bool, string) {
		left := strays(ctx, t)
		return len(left) == 0, strings.Join(left, "\n")
	})
	if err != nil {
		t.Error(err)
	}

	t.Run("admission works after the uninstall", func(t *testing.T) {
		for _, args := range [][]string{
			{"create", "namespace", "e2e-after"},
			{"create", "deployment", "web", "--image=docker.io/plumbline/shop:dev", "-n", "e2e-after"},
			{"scale", "deployment/web", "--replicas=2", "-n", "e2e-after"},
			{"delete", "namespace", "e2e-after"},
		} {
			if _, err := cluster.Kubectl(ctx, args...); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("it can be installed again", func(t *testing.T) {
		if err := harness.Call(ctx, "go", "run", "./hack/demo", "install", "--name", clusterName); err != nil {
			t.Fatal(err)
		}
		helm("test", "plumbline", "--timeout=2m")
	})
}

// outlive are what outlives the release: the key of the records, its public half, and the anchor,
// and how far proxies were, which may run on.
var outlive = []string{
	"secret/plumbline-evidence", "configmap/plumbline-evidence", "configmap/plumbline-evidence-anchor", "configmap/plumbline-xds-sequences",
}

// strays lists every object of ours that is left, the kept CRDs aside.
func strays(ctx context.Context, t *testing.T) []string {
	t.Helper()
	var left []string
	for _, args := range [][]string{
		{"get", "mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings,clusterroles,clusterrolebindings", "-o", "name"},
		{"get", "all,secrets,configmaps,serviceaccounts,leases,roles,rolebindings,networkpolicies,poddisruptionbudgets", "-n", systemNamespace, "-o", "name"},
		{"get", "roles,rolebindings", "-n", "kube-system", "-o", "name"},
	} {
		out, err := cluster.Kubectl(ctx, args...)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out) {
			line = strings.TrimSpace(line)
			if strings.Contains(line, "plumbline") && !slices.Contains(outlive, line) {
				left = append(left, line)
			}
		}
	}
	return left
}
