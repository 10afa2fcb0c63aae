// SPDX-License-Identifier: Apache-2.0

package acknowledged

import (
	"fmt"

	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

// contradiction is what a proxy has that cannot be, if the newest decision is in force.
type contradiction struct {
	// why is empty when there is none.
	why string
	// ahead is the sequence that the next decision has to be above; 0 when that is not why.
	ahead uint64
}

// contradiction of a proxy: a route of a later decision, or other content of the newest one.
func (q Question) contradiction(w Wanted, k known) (found contradiction) {
	newest := q.Applied[len(q.Applied)-1].Sequence
	for _, name := range w.Routes {
		published, is := q.Newest[name]
		if !is {
			continue
		}
		last := published.Sequence
		if !w.Shared {
			last = max(last, newest) // this replica may not have published it yet
		}
		for _, has := range q.held(k, name) {
			switch {
			case has.Sequence > last:
				found.why = fmt.Sprintf("has %s, and the newest sequence is %d", has, last)
				if by := has.Sequence - last; by <= traffic.MaxAhead {
					found.ahead = max(found.ahead, newest+by)
				}
			case found.why == "" && has.Sequence == published.Sequence && has != published:
				found.why = fmt.Sprintf("has %s, and that sequence is %s", has, published)
			}
		}
	}
	return found
}
