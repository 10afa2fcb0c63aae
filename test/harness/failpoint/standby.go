// SPDX-License-Identifier: Apache-2.0

package failpoint

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// oftenAsked is the fault by which a standby asks for the lease every one to three
// seconds, instead of two to five. Once it leads, it may be held up for six seconds.
const oftenAsked = "lease:9s"

// StartPair starts an executor with a fault, which leads, and a standby. A busy machine ends
// no leader: its lease is as long as elsewhere, see [Cluster.ShortenLease].
func (c *Cluster) StartPair(t *testing.T, f *Files, fault string, flags ...string) (leader, standby *Executor) {
	t.Helper()
	flags = append([]string{"--leader-elect=true"}, flags...)
	leader = c.Start(t, f, fault, flags...)
	poll.True(t, Patience, "it leads", func() bool {
		leads, err := leader.Metric(t.Context(), "plumbline_executor_leader")
		return err == nil && leads == 1
	})
	standby = c.Start(t, f, oftenAsked, flags...)
	return leader, standby
}

// ShortenLease has the lease of a leader that is dead or stopped hold a standby up for a
// second instead of fifteen: a candidate waits for as long as the lease itself says.
func (c *Cluster) ShortenLease(t *testing.T) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: rendered.Namespace, Name: "plumbline-executor"}}
	err := c.Admin.Patch(t.Context(), lease, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"leaseDurationSeconds":1}}`)))
	if err != nil {
		t.Fatal(err)
	}
}
