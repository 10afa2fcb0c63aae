// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"errors"

	"github.com/plumbline-dev/plumbline/pkg/admission"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// The verdicts of the guards.
const (
	// VerdictAllow: guarded, and the writer may do this.
	VerdictAllow admission.Verdict = "allow"
	// VerdictAudit: a foreign change, recorded without a word.
	VerdictAudit admission.Verdict = "audit"
	// VerdictWarn: a foreign change, recorded, and the writer was told.
	VerdictWarn admission.Verdict = "warn"
	// VerdictUnguarded: no guard selects the object. A stamp of a writer that the webhook
	// set is taken off.
	VerdictUnguarded admission.Verdict = "unguarded"
	// VerdictNotRoot: the product of a built-in controller, judged by its owner. It is
	// recorded where the webhook stamps the writer.
	VerdictNotRoot admission.Verdict = "not_root"
	// VerdictStamped: the mutating webhook changed annotations of a write that it does
	// not judge.
	VerdictStamped admission.Verdict = "stamped"
	// VerdictUnchanged: the annotations were right already.
	VerdictUnchanged admission.Verdict = "unchanged"
)

// reasonOf maps an error of an object to the reason that is counted.
func reasonOf(err error) admission.Reason {
	if _, syntax := errors.AsType[*canon.SyntaxError](err); syntax {
		return admission.ReasonObject
	}
	return admission.ReasonMalformed
}

// kindOf, operationOf and identityOf return parts of a review as the rules name them.
func kindOf(r *admission.Review) canon.GVK { return canon.GVK(r.Kind) }

func operationOf(r *admission.Review) specguard.Operation { return specguard.Operation(r.Operation) }

func identityOf(r *admission.Review) specguard.Identity {
	return specguard.Identity{User: r.User, Groups: r.Groups}
}
