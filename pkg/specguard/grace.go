// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// maxGrace bounds Config.Grace.
const maxGrace = 500 * time.Millisecond

// proofGrace is how long the record is waited for that proves the webhook's stamp of a
// trusted user. Without the record, the write is drift until a person accepts it.
const proofGrace = 5 * time.Second

// waitForRecord asks to be called again while the record of a write may still
// be on its way; false when it is no use to wait (any longer).
func (s *step) waitForRecord(seenAt time.Time) bool {
	return s.waitUpTo(min(s.in.Config.Grace, maxGrace), seenAt)
}

// waitForProof waits for the record that proves the webhook's stamp. A stamp of a trusted
// user waits for longer: the record authorizes the write, and comes late from a busy webhook.
func (s *step) waitForProof(paths []canon.Path) bool {
	grace := min(s.in.Config.Grace, maxGrace)
	if grace > 0 && s.in.Config.Stamp == StampWebhook && s.in.Rules.Classify(s.obs.stamp(), paths) == v1alpha1.ActorTrusted {
		grace = proofGrace
	}
	return s.waitUpTo(grace, s.obs.SeenAt)
}

// waitUpTo waits until a grace is over that began when the write was seen.
func (s *step) waitUpTo(grace time.Duration, seenAt time.Time) bool {
	waited := s.in.Now.Sub(seenAt)
	if !s.in.RecordsHealthy || seenAt.IsZero() || waited < 0 || waited >= grace {
		return false
	}
	s.retry = grace - waited
	return true
}
