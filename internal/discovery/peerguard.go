// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"

	"github.com/plumbline-dev/plumbline/pkg/traffic/identity"
)

// peerGuard lets in replicas of the same service account. It implements peers.Guard.
type peerGuard struct {
	verifier Verifier
	refused  func(identity.Reason)
}

// newPeerGuard knows its own service account by its own pod, which is asked for each
// time: it may not be in the cache yet.
func newPeerGuard(v *identity.Verifier, own Replicas, cluster Cluster, refused func(identity.Reason)) peerGuard {
	account := func(namespace, name string) bool {
		pod := cluster.Pod(own.Namespace, own.Name)
		return pod != nil && namespace == own.Namespace && name == pod.Spec.ServiceAccountName
	}
	return peerGuard{
		verifier: v.For(identity.Expected{Audience: PeerAudience, Account: account}, identity.Limits{PerSecond: 10, Burst: 20, Concurrent: 4}),
		refused:  refused,
	}
}

// Admit implements peers.Guard.
func (g peerGuard) Admit(ctx context.Context, authorization []string) error {
	token, err := identity.Bearer(authorization)
	if err == nil {
		_, err = g.verifier.Verify(ctx, token)
	}
	if err != nil {
		g.refused(identity.ReasonOf(err))
		return statusOf(err)
	}
	return nil
}
