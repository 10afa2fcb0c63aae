// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"github.com/plumbline-dev/plumbline/internal/actions/wording"
	"github.com/plumbline-dev/plumbline/internal/cli/invocation"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// PrintResult is the one line per object that kubectl's verbs print.
func PrintResult(inv *invocation.Invocation, b *v1alpha1.Baseline, words string) error {
	return inv.Print(invocation.Printable(wording.QualifiedName(b)), " ", words, "\n")
}
