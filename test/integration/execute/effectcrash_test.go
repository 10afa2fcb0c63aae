// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// The writes of an assessment, in their order.
const (
	beginsAssessment = "begin"
	storesLook       = "look"
	storesEnd        = "end"
)

// assessmentWrite names a write of an assessment of the namespace; empty for any other request.
func assessmentWrite(r *http.Request, namespace string) string {
	switch {
	case !strings.Contains(r.URL.Path, "/namespaces/"+namespace+"/effectivenessassessments"):
		return ""
	case r.Method == http.MethodPost:
		return beginsAssessment
	case r.Method != http.MethodPatch || r.GetBody == nil:
		return ""
	}
	body, err := r.GetBody()
	if err != nil {
		return ""
	}
	raw, err := io.ReadAll(body)
	if err != nil || !strings.Contains(string(raw), string(v1alpha1.AssessmentCompleted)) {
		return storesLook
	}
	return storesEnd
}

// death is where an assessor dies: at a write, before or after the API server has stored it.
type death struct {
	namespace string // other tests leave assessments behind
	write     string
	stored    bool
	mu        sync.Mutex
	begun     bool          // later writes fail
	dead      chan struct{} // closed after the API server's answer: a test that halts earlier cancels the write
}

var errDead = errors.New("the assessor is dead")

// option has each write of assessments fail from the death on.
func (d *death) option(s *assessor.Setup) {
	assessesEffects(s)
	s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			name := assessmentWrite(r, d.namespace)
			if name == "" {
				return next.RoundTrip(r)
			}
			switch dies, dead := d.at(name); {
			case dead:
				return nil, errDead
			case dies && d.stored:
				defer close(d.dead)
				response, err := next.RoundTrip(r)
				if err == nil {
					_ = response.Body.Close()
				}
				return nil, errDead
			case dies:
				close(d.dead)
				return nil, errDead
			}
			return next.RoundTrip(r)
		})
	})
}

// at says whether the assessor dies at a write, or is dead already.
func (d *death) at(write string) (dies, dead bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.begun {
		return false, true
	}
	d.begun = write == d.write
	return d.begun, false
}

// Six assessors die one after the other, before and after each write of one assessment. The seventh finds the end,
// and drift afterwards causes it no further look.
func TestAnAssessmentSurvivesTheDeathOfTheAssessorAtEachWrite(t *testing.T) {
	startExecutor(t, newEvidence(t))
	first := startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	w.Drifted("web")
	plan := w.measuredPlan(v1alpha1.ActionReconcile)
	w.UntilIs("web", "InSync")
	readyPods(2)(w)
	first.Halt(t)
	for _, write := range []string{beginsAssessment, storesLook, storesEnd} {
		for _, stored := range []bool{false, true} {
			d := &death{namespace: w.Name, write: write, stored: stored, dead: make(chan struct{})}
			p := startAssessor(t, d.option)
			w.Eventually(fmt.Sprintf("an assessor dies at the write %q, stored: %t", write, stored), func() error {
				select {
				case <-d.dead:
					return nil
				default:
					return errors.New("it lives")
				}
			})
			p.Halt(t)
			if a, err := w.assessment(plan, 0); stored && err != nil || !stored && write == beginsAssessment && err == nil {
				t.Fatalf("after the write %q, stored: %t: %+v, %v", write, stored, a.Status, err)
			}
		}
	}
	asked := &requests{counts: map[string]int{}}
	startAssessor(t, assessesEffects, func(s *assessor.Setup) { s.Config = asked.of(s.Config) })
	a := w.assessed(plan, 0, "the assessment has ended", hasEnded)
	if diff := cmp.Diff(effective(), endOf(a)); diff != "" || len(a.Status.Components) != 3 {
		t.Errorf("the end differs (-want +got):\n%s%+v", diff, a.Status)
	}
	asked.clear()
	w.SetImage(mallory, "web", remediation.EvilImage)
	w.Until("web", "the drift is told", drifts)
	for _, what := range []string{"list pods", "patch effectivenessassessments", "post effectivenessassessments"} {
		if n := asked.count(what); n > 0 {
			t.Errorf("after the end: %d times %s", n, what)
		}
	}
}
