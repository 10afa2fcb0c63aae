// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"

	"github.com/go-logr/logr"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/exec"
	"github.com/plumbline-dev/plumbline/pkg/remediate/ledger"
	"github.com/plumbline-dev/plumbline/pkg/remediate/redisguard"
)

// mirror asks the copy in Redis, by the API server's time.
type mirror struct {
	*redisguard.Mirror
	time exec.Time
	log  logr.Logger
}

// Ask implements exec.Mirror. Only a refusal counts.
func (m mirror) Ask(ctx context.Context, l *v1alpha1.RemediationLedger, r ledger.Request, rules ledger.Rules) (refusal ledger.Gate, refused bool) {
	answer := m.Consult(ctx, l.Name, string(l.UID), &l.Status, r, rules, m.time.Now())
	return answer.Refused, answer.Vetoed()
}

// Put implements exec.Mirror. That it fails is no reason to wait: the copy is
// known to be behind by its sequence, and is put again when it is asked.
func (m mirror) Put(ctx context.Context, l *v1alpha1.RemediationLedger) {
	if err := m.Mirror.Put(ctx, l.Name, string(l.UID), &l.Status); err != nil {
		m.log.V(1).Info("the copy of the ledger in Redis was not written", "ledger", l.Name, "error", err.Error())
	}
}
