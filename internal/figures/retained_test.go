// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/kube"
)

// retaining is a tracker that keeps so much.
type retaining kube.Retained

func (r retaining) Retained() kube.Retained { return kube.Retained(r) }

func TestRetained(t *testing.T) {
	r := &Retained{Objects: retaining{Bytes: 900, Budget: 1000, Unguarded: 3, Dropped: 2}, Active: always}
	want := "plumbline_assessor_object_cache_bytes 900\nplumbline_assessor_object_cache_limit_bytes 1000\n" +
		"plumbline_assessor_object_cache_partial_objects{reason=\"limit\"} 2\nplumbline_assessor_object_cache_partial_objects{reason=\"unguarded\"} 3"
	if diff := cmp.Diff(want, samples(t, r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	r.Active = func() bool { return false }
	if got := samples(t, r); got != "" {
		t.Errorf("a replica that waits gave figures:\n%s", got)
	}
}
