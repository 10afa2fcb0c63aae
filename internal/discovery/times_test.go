// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheTimesOfProduction(t *testing.T) {
	want := Times{Goodbye: 5 * time.Second, Window: time.Minute, OldConnections: 10 * time.Minute, Silence: 2 * time.Minute}
	if diff := cmp.Diff(want, Times{}.withDefaults()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want.Window = time.Second
	if diff := cmp.Diff(want, Times{Window: time.Second}.withDefaults()); diff != "" {
		t.Errorf("with one that is set (-want +got):\n%s", diff)
	}
}
