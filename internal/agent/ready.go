// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"sync/atomic"
)

// readiness says whether the program has had its ports.
type readiness struct{ has atomic.Bool }

func (r *readiness) set(has bool) { r.has.Store(has) }

func (r *readiness) check() error {
	if !r.has.Load() {
		return errors.New("the program has not been proven to have its ports")
	}
	return nil
}
