// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
)

// enoughOrders make a tenth visible: its share of so many is within three percent.
const enoughOrders = 500

// divide has sidecars of both modes divide requests between two versions.
func (s *story) divide(ctx context.Context) error {
	s.heading("Traffic is divided between two versions")
	s.say("Two clients order from the service pay without pause, each through a proxy that\nits pod was given because its namespace asks for that. One is redirected to it,\none calls a local port.")
	// Who buys before there is anybody who sells is told so.
	if err := s.runs(ctx, versionsOfPay(s.image), "pay-stable", "pay-canary"); err != nil {
		return err
	}
	if err := s.runs(ctx, buyersOfPay(s.image), "buyer-redirect", "buyer-explicit"); err != nil {
		return err
	}
	if err := s.runAs(ctx, s.admin, "kubectl apply -f pay-release.yaml   # 90 % stable, 10 % canary",
		[]string{"kubectl", "apply", "-f", "-"}, harness.WithStdin(strings.ReplaceAll(splitReleaseManifest, "SPLIT", splitNamespace))); err != nil {
		return err
	}
	if err := s.counted(ctx, 10); err != nil {
		return err
	}
	if err := s.run(ctx, s.admin, "kubectl", "patch", "abrelease", "pay", "-n", splitNamespace, "--type=merge",
		"-p", `{"spec":{"trafficSplit":{"percentages":{"stable":50,"canary":50}}}}`); err != nil {
		return err
	}
	if err := s.counted(ctx, 50); err != nil {
		return err
	}
	if err := s.run(ctx, s.admin, "kubectl", "get", "abreleases", "-n", splitNamespace); err != nil {
		return err
	}
	if err := s.run(ctx, s.admin, "kubectl", "plumbline", "proxies", "-n", splitNamespace); err != nil {
		return err
	}
	return s.nothingLost(ctx)
}

// runs applies a manifest and waits until its deployments run.
func (s *story) runs(ctx context.Context, manifest string, deployments ...string) error {
	if err := s.admin.Apply(ctx, manifest); err != nil {
		return err
	}
	for _, d := range deployments {
		if _, err := s.admin.Kubectl(ctx, "rollout", "status", "deployment/"+d, "-n", splitNamespace, "--timeout=120s"); err != nil {
			return err
		}
	}
	return nil
}

// counted waits until every proxy has acknowledged the canary's share, and then counts
// it where the answers arrive.
func (s *story) counted(ctx context.Context, percent int) error {
	if err := s.awaitSplit(ctx, percent); err != nil {
		return err
	}
	before := map[string]orders{}
	for _, buyer := range buyers {
		seen, err := s.orders(ctx, buyer.mode)
		if err != nil {
			return err
		}
		before[buyer.mode] = seen
	}
	for _, buyer := range buyers {
		then := before[buyer.mode]
		var stable, canary uint64
		if err := harness.Eventually(ctx, fmt.Sprintf("%d orders of buyer-%s", enoughOrders, buyer.mode), patience, func(ctx context.Context) (bool, string) {
			now, err := s.orders(ctx, buyer.mode)
			if err != nil {
				return false, err.Error()
			}
			stable, canary = now.Answered["stable"]-then.Answered["stable"], now.Answered["canary"]-then.Answered["canary"]
			return stable+canary >= enoughOrders, fmt.Sprintf("stable %d, canary %d, failed %d: %q", stable, canary, now.Failed, now.Failures)
		}); err != nil {
			return err
		}
		n, share := float64(stable+canary), float64(percent)/100
		seen := float64(canary) / n
		s.say("=> buyer-%s: of %.0f answers %d came from stable, %d from canary: %.1f %%", buyer.mode, n, stable, canary, 100*seen)
		if bound := 4 * math.Sqrt(share*(1-share)/n); math.Abs(seen-share) > bound {
			return fmt.Errorf("the canary has %.1f %% of the answers, want %d %% ± %.1f", 100*seen, percent, 100*bound)
		}
	}
	return nil
}

func (s *story) awaitSplit(ctx context.Context, percent int) error {
	want := fmt.Sprintf("stable %d / canary %d", 100-percent, percent)
	return harness.Eventually(ctx, "every proxy acknowledges "+want, patience, func(ctx context.Context) (bool, string) {
		var r v1alpha1.ABRelease
		if err := s.admin.Read(ctx, &r, splitNamespace, "pay"); err != nil {
			return false, err.Error()
		}
		c := r.Status.Acknowledged
		if r.Status.Split != want || c == nil || r.Status.Effective == nil {
			return false, fmt.Sprintf("%+v", r.Status)
		}
		return c.Knowledge == v1alpha1.AcknowledgedProven && c.Sequence == r.Status.Effective.Sequence && int(c.Proxies) >= len(buyers), fmt.Sprintf("%+v", *c)
	})
}

// nothingLost says that no order of the buyers has failed.
func (s *story) nothingLost(ctx context.Context) error {
	for _, buyer := range buyers {
		seen, err := s.orders(ctx, buyer.mode)
		if err != nil {
			return err
		}
		if seen.Failed > 0 {
			return fmt.Errorf("%d of %d orders of buyer-%s failed: %q", seen.Failed, seen.Started, buyer.mode, seen.Failures)
		}
		s.say("=> buyer-%s: %d orders in all, none failed", buyer.mode, seen.Started)
	}
	return nil
}

// orders are what a buyer has counted.
type orders struct {
	Started  uint64            `json:"started"`
	Answered map[string]uint64 `json:"answered"`
	Failed   uint64            `json:"failed"`
	// Spoiled are the failed orders that a bad version answered.
	Spoiled  uint64   `json:"spoiled"`
	Failures []string `json:"failures"`
}

// orders of a buyer until now, read through the API server.
func (s *story) orders(ctx context.Context, mode string) (orders, error) {
	var pods corev1.PodList
	if err := s.admin.ReadAll(ctx, &pods, splitNamespace, client.MatchingLabels{"app": "buyer-" + mode}, client.MatchingFields{"status.phase": "Running"}); err != nil {
		return orders{}, err
	}
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp != nil {
			continue
		}
		out, err := s.admin.ReadRaw(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:8080/proxy/visits", splitNamespace, pods.Items[i].Name))
		if err != nil {
			return orders{}, err
		}
		var seen orders
		if err := json.Unmarshal(out, &seen); err != nil {
			return orders{}, fmt.Errorf("reading the orders of buyer-%s: %w", mode, err)
		}
		return seen, nil
	}
	return orders{}, errors.New("no pod of buyer-" + mode + " runs")
}
