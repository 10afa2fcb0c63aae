// SPDX-License-Identifier: Apache-2.0

package asker

import (
	"testing"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/backend"
)

func TestOneIsAskedAgainAndAgainUntilThatIsStopped(t *testing.T) {
	for name, pause := range map[string]time.Duration{"without a pause": 0, "with one": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			answers := make(chan Answer)
			stop := Start(t, backend.Start(t, "web"), pause, func(a Answer) {
				select {
				case answers <- a:
				case <-t.Context().Done():
				}
			})
			var last time.Time
			for range 5 {
				a := <-answers
				if a.Text != "200 web" || !a.At.After(last) {
					t.Errorf("it answers %q at %s after %s", a.Text, a.At, last)
				}
				last = a.At
			}
			go func() { // one answer may be on its way
				for range answers {
					continue
				}
			}()
			stop()
			close(answers)
		})
	}
}
