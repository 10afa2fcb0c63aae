// SPDX-License-Identifier: Apache-2.0

//go:build lifecycle

package lifecycle

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/test/harness"
)

// The self-test as an upgrade turns it on: its pod, with its own rights, through
// the real webhook. Rounds are at fixed times, so the first is at most a period
// away; it is the shortest that the chart takes.
func TestTheSelftestOfAnInstallationIsFound(t *testing.T) {
	const period = 4 * time.Minute
	whole(t)
	helm(t, "upgrade", "plumbline", "charts/plumbline", "--reuse-values", "--set", "selftest.enabled=true",
		"--set", "selftest.period="+period.String(), "--wait", "--timeout=3m")
	t.Cleanup(func() {
		_, err := cluster.Run(context.Background(), []string{
			"helm", "upgrade", "plumbline", "charts/plumbline", "-n", systemNamespace, "--reuse-values",
			"--set", "selftest.enabled=false", "--wait", "--timeout=3m",
		})
		if err != nil {
			t.Errorf("turning the self-test off: %v", err)
		}
	})
	pods, err := kube.CoreV1().Pods(systemNamespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=selftest"})
	must(t, err)
	if len(pods.Items) != 1 {
		t.Fatalf("%d pods of the self-test, want 1", len(pods.Items))
	}
	pod := pods.Items[0].Name
	rounds := func(ctx context.Context, labels ...string) (float64, error) {
		return sample(ctx, pod, "plumbline_selftest_rounds_total", labels...)
	}
	must(t, harness.Eventually(t.Context(), "the first round", period+patience, func(ctx context.Context) (bool, string) {
		all, err := rounds(ctx)
		return err == nil && all > 0, fmt.Sprintf("%v rounds, %v", all, err)
	}))
	if found, err := rounds(t.Context(), `result="found"`); err != nil || found < 1 {
		t.Errorf("the self-test was found and named %v times, %v; its log:\n%s", found, err, kubectl(t, "logs", pod))
	}
	if unstamped, err := sample(t.Context(), pod, "plumbline_selftest_unstamped_total"); err != nil || unstamped > 0 {
		t.Errorf("%v writes of the self-test were stored without a stamp, %v", unstamped, err)
	}
}
