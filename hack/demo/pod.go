// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// podOverrides are what the namespace demands of each pod.
const podOverrides = `{"spec":{"automountServiceAccountToken":false,"terminationGracePeriodSeconds":1,
	"securityContext":{"runAsNonRoot":true,"runAsUser":65532,"seccompProfile":{"type":"RuntimeDefault"}},
	"containers":[{"name":"miner","image":"IMAGE","resources":{"requests":{"cpu":"5m","memory":"16Mi"},"limits":{"memory":"64Mi"}},
	"securityContext":{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,"capabilities":{"drop":["ALL"]}}}]}}`

// runPod has a person start a pod by hand, beside those that the controllers of Kubernetes make.
func (s *story) runPod(ctx context.Context) error {
	s.heading("A pod that no controller made")
	s.say("The guard names Pod as well. The pods that Kubernetes makes from the Deployments of\nCI stay quiet, and a pod that %s starts by hand has a finding with the name.", otherHuman)
	args := []string{"kubectl", "run", "miner", "--image=" + s.image, "-n", shopNamespace, "--as", otherHuman}
	hidden := "--overrides=" + strings.ReplaceAll(podOverrides, "IMAGE", s.image)
	if err := s.runAs(ctx, s.admin, shown(args)+"   # with the security context that the namespace demands", append(args, hidden)); err != nil {
		return err
	}
	const baseline = "pods.core.miner"
	if err := s.awaitBaseline(ctx, baseline, "a finding by "+otherHuman, func(b *v1alpha1.Baseline) bool {
		return len(b.Status.Findings) == 1 && b.Status.Findings[0].Class == v1alpha1.ClassObjectUnexpected && b.Status.Findings[0].Actor.User == otherHuman
	}); err != nil {
		return err
	}
	if err := s.run(ctx, s.admin, "kubectl", "plumbline", "blame", "pod/miner", "-n", shopNamespace); err != nil {
		return err
	}
	if err := s.asHuman(ctx, otherHuman, "delete", "pod/miner"); err != nil {
		return err
	}
	if _, err := s.admin.Kubectl(ctx, "wait", "--for=delete", "baseline/"+baseline, "-n", shopNamespace, "--timeout=60s"); err != nil {
		return err
	}
	return s.baselines(ctx)
}
