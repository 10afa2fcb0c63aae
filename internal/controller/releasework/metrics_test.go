// SPDX-License-Identifier: Apache-2.0

package releasework

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// store has works, or an error.
type store struct {
	client.Reader
	works []v1alpha1.ReleaseWork
	err   error
}

func (s *store) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.ReleaseWorkList).Items = s.works
	return s.err
}

// still is the API server's time.
type still time.Time

func (s still) Now() time.Time { return time.Time(s) }

func (still) Skew() time.Duration { return 0 }

func workOf(verb v1alpha1.ReleaseWorkVerb, phase v1alpha1.ReleaseWorkPhase, made time.Time) v1alpha1.ReleaseWork {
	return v1alpha1.ReleaseWork{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)},
		Spec:       v1alpha1.ReleaseWorkSpec{Verb: verb}, Status: v1alpha1.ReleaseWorkStatus{Phase: phase},
	}
}

func TestMetrics_TellOfWorks(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s, leads := &store{}, true
	m, err := NewMetrics(prometheus.NewRegistry(), s, still(noon), func() bool { return leads })
	if err != nil {
		t.Fatal(err)
	}
	s.works = []v1alpha1.ReleaseWork{
		workOf(v1alpha1.WorkScale, "", noon.Add(-time.Minute)), workOf(v1alpha1.WorkScale, v1alpha1.WorkPending, noon.Add(-90*time.Second)),
		workOf(v1alpha1.WorkScale, v1alpha1.WorkSucceeded, noon.Add(-time.Hour)), workOf(v1alpha1.WorkHoldMinReplicas, v1alpha1.WorkRefused, noon.Add(-time.Hour)),
	}
	if got := testutil.CollectAndCount(m); got != len(verbs)*len(phases)+1 {
		t.Errorf("%d series", got)
	}
	want := `# HELP plumbline_release_work_oldest_seconds Time since the oldest ReleaseWork that has not ended was made; 0 without one; on the executor that leads.
# TYPE plumbline_release_work_oldest_seconds gauge
plumbline_release_work_oldest_seconds 90
`
	if err := testutil.CollectAndCompare(m, strings.NewReader(want), "plumbline_release_work_oldest_seconds"); err != nil {
		t.Error(err)
	}
	counts, _ := census(s.works, noon)
	if diff := cmp.Diff(map[kindOfWork]int{{v1alpha1.WorkScale, v1alpha1.WorkPending}: 2, {v1alpha1.WorkScale, v1alpha1.WorkSucceeded}: 1, {v1alpha1.WorkHoldMinReplicas, v1alpha1.WorkRefused}: 1}, counts, cmp.AllowUnexported(kindOfWork{})); diff != "" {
		t.Errorf("works (-want +got):\n%s", diff)
	}
	for _, end := range []v1alpha1.ReleaseWorkStatus{{Phase: v1alpha1.WorkSucceeded}, {Phase: v1alpha1.WorkRefused, Reason: v1alpha1.WorkHalted}, {Phase: v1alpha1.WorkFailed, Reason: v1alpha1.WorkHalted}} {
		m.count(&end)
	}
	if got := testutil.ToFloat64(m.refused.WithLabelValues("Halted")); got != 2 {
		t.Errorf("%v works were refused or failed", got)
	}
	if s.err = errors.New("away"); testutil.CollectAndCount(m) != 0 {
		t.Error("works that cannot be read are counted")
	}
	if s.err, leads = nil, false; testutil.CollectAndCount(m) != 0 {
		t.Error("an executor that does not lead tells of works")
	}
	(*Metrics)(nil).count(&v1alpha1.ReleaseWorkStatus{Phase: v1alpha1.WorkRefused})
}

// A reason that is missing here has no series until it is counted, and its first count is no increase.
func TestMetrics_KnowAllReasons(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../../pkg/apis/plumbline/v1alpha1/releasework_types.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared, known []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || len(spec.Values) != 1 {
			return true
		}
		kind, isNamed := spec.Type.(*ast.Ident)
		value, isText := spec.Values[0].(*ast.BasicLit)
		if isNamed && isText && slices.Contains([]string{"ReleaseWorkReason", "ReleaseWorkVerb", "ReleaseWorkPhase"}, kind.Name) {
			text, err := strconv.Unquote(value.Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, text)
		}
		return true
	})
	for _, reason := range reasons {
		known = append(known, string(reason))
	}
	for _, verb := range verbs {
		known = append(known, string(verb))
	}
	for _, phase := range phases {
		known = append(known, string(phase))
	}
	slices.Sort(declared)
	slices.Sort(known)
	if diff := cmp.Diff(declared, known); diff != "" || len(declared) < 25 {
		t.Errorf("(-declared +known):\n%s", diff)
	}
}
