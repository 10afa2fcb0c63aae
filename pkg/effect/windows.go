// SPDX-License-Identifier: Apache-2.0

package effect

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// The bounds of a stabilization that a policy leaves out, and the validity that it then has.
const (
	leastStabilization = 30 * time.Second
	mostStabilization  = 5 * time.Minute
	usualValidity      = 30 * time.Minute
)

// WindowsOfPolicy returns the windows of a policy. A stabilization that the policy leaves out is its
// cooldown, at least 30 seconds and at most five minutes.
func WindowsOfPolicy(policy *v1alpha1.RemediationPolicySpec) Windows {
	e := &policy.Effectiveness
	w := Windows{Propagation: durationOf(e.PropagationDelay, 0), AlertDelay: durationOf(e.AlertCheckDelay, 0), Validity: durationOf(e.Validity, usualValidity)}
	cooldown := durationOf(policy.Safety.Cooldown, mostStabilization)
	w.Stabilization = durationOf(e.Stabilization, min(max(cooldown, leastStabilization), mostStabilization))
	return w
}

func durationOf(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil {
		return otherwise
	}
	return d.Duration
}
