// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/readiness"
)

// rememberReady notes an authorized state that is seen to work: a rollback leads
// to the newest of them, and nowhere else.
func (s *subject) rememberReady(status *v1alpha1.BaselineStatus) {
	if !s.provenReady(status) {
		return
	}
	authorized := s.baseline.Spec.Authorized
	status.LastReady = &v1alpha1.ReadyRevision{Revision: authorized.Revision, Hash: authorized.Hash, ReadyTime: metav1.NewTime(s.now)}
}

// provenReady says that what is authorized runs, is ready, and was not known to
// be. The version that is ready has to be the very one that was judged.
func (s *subject) provenReady(status *v1alpha1.BaselineStatus) bool {
	current, authorized := s.view.Current, s.baseline.Spec.Authorized
	switch {
	case status.State != v1alpha1.StateInSync, status.RetirementTime != nil, authorized == nil:
		return false
	case current == nil, s.view.Unknown != nil:
		return false
	case current.Ready != readiness.Ready:
		return false
	case string(current.UID) != status.Observed.UID, string(current.FullHash) != status.Observed.FullHash:
		return false
	}
	last := status.LastReady
	return last == nil || last.Revision != authorized.Revision || last.Hash != authorized.Hash
}
