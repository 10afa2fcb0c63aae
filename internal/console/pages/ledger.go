// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"github.com/plumbline-dev/plumbline/internal/console/view"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

func readLedger(r *reader) (view.Page, error) {
	l, err := get(r, "RemediationLedger", &v1alpha1.RemediationLedger{})
	if err != nil {
		return view.Page{}, err
	}
	return view.LedgerOf(l, r.Now()), nil
}
