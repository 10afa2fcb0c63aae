// SPDX-License-Identifier: Apache-2.0

//go:build integration

package remediate

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// An assessor that starts looks at policies before it has listed all kinds. Drift that
// was known before is no event when the list arrives.
func TestDriftOfAKindThatIsListedLateIsActedUpon(t *testing.T) {
	w := newWorld(t)
	before := start(t)
	w.UnderGuard()
	w.running("web", "db")
	w.SetImage(alice, "web", evil)
	w.UntilIs("web", "Drifted: Changed "+guarded.ImagePath+" by alice (Untrusted, WriterStamp)")
	before.Halt(t)
	w.policy(func(s *v1alpha1.RemediationPolicySpec) {
		s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	})

	list := make(chan struct{})
	start(t, func(s *assessor.Setup) {
		s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &lateList{next, list} })
	})
	w.untilPolicy("the object is not known", counts(0, 0, 0))
	close(list)
	w.untilTargets("web")
}

// lateList holds requests for all Deployments until its channel is closed. It refuses
// what is written about guards, for that is an event, too.
type lateList struct {
	next http.RoundTripper
	list <-chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (l *lateList) RoundTrip(r *http.Request) (*http.Response, error) {
	switch {
	case strings.Contains(r.URL.Path, "/specguards/") && r.Method != http.MethodGet:
		return nil, errors.New("a fault of the test")
	case strings.HasSuffix(r.URL.Path, "/deployments"):
		select {
		case <-l.list:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return l.next.RoundTrip(r)
}
