// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/readiness"
)

// rememberReady notes an authorised state that is seen to work: a rollback leads
// to the newest of them, and nowhere else.
func (s *subject) rememberReady(status *v1alpha1.BaselineStatus) {
	if !s.provenReady(status) {
		return
	}
	authorised := s.baseline.Spec.Authorised
	status.LastReady = &v1alpha1.ReadyRevision{Revision: authorised.Revision, Hash: authorised.Hash, At: metav1.NewTime(s.now)}
}

// provenReady says that what is authorised runs, is ready, and was not known to
// be. The version that is ready has to be the very one that was judged.
func (s *subject) provenReady(status *v1alpha1.BaselineStatus) bool {
	current, authorised := s.view.Current, s.baseline.Spec.Authorised
	switch {
	case status.State != v1alpha1.StateInSync, status.RetiredAt != nil, authorised == nil:
		return false
	case current == nil, s.view.Unknown != nil:
		return false
	case current.Ready != readiness.Ready:
		return false
	case string(current.UID) != status.Observed.UID, string(current.FullHash) != status.Observed.FullHash:
		return false
	}
	last := status.LastReady
	return last == nil || last.Revision != authorised.Revision || last.Hash != authorised.Hash
}
