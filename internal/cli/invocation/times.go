// SPDX-License-Identifier: Apache-2.0

package invocation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/actions/wording"
)

// FormatAge gives the time since at as kubectl prints it.
func (inv *Invocation) FormatAge(at metav1.Time) string { return wording.FormatAge(at, inv.Now()) }

// FormatAgo gives the age of a time in a sentence.
func (inv *Invocation) FormatAgo(at metav1.Time) string { return wording.FormatAgo(at, inv.Now()) }

// FormatTime gives a time and how far from now it is; empty for no time.
func (inv *Invocation) FormatTime(at *metav1.Time) string { return wording.FormatTime(at, inv.Now()) }

// FormatUntil says when something ends, and how long that is from now.
func (inv *Invocation) FormatUntil(at metav1.Time) string { return wording.FormatUntil(at, inv.Now()) }
