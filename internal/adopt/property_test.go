// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

var (
	someManagers = []string{
		"argocd-controller", "kustomize-controller", "helm-controller", "helm", "kubectl", "kubectl-edit", "kubectl-client-side-apply",
		"kubectl-set", "k9s", "Lens", "pipeline", "kube-controller-manager", "keda", "before-first-apply", "curl", "", "a\nb: c #",
	}
	someUsers = []string{
		"", "alice", "kubectl-edit", "system:node:n", "system:serviceaccount:ci:deployer", "system:serviceaccount:ci:other",
		"system:serviceaccount:shop:default", "system:serviceaccount:kube-system:horizontal-pod-autoscaler", "system:serviceaccount::x",
		"system:serviceaccount:argocd:argocd-application-controller",
	}
	someFields = []string{image, replicas, restart, labels, status, `{"f:spec":{"f:paused":{}}}`, `{}`, `{"f:spec":`, `{"f:data":{"f:k":{}}}`}
)

// world is a question, objects and which accounts exist.
type world struct {
	Question Question
	Objects  []*metav1.ObjectMeta
	Accounts map[string]Existence
}

func drawWorld(t *rapid.T) world {
	w := world{Question: question(), Accounts: map[string]Existence{}}
	w.Question.Draft.Existing = rapid.Bool().Draw(t, "existing")
	if rapid.Bool().Draw(t, "unproven") {
		w.Question.Installation.StampedSince = time.Time{}
	}
	names := []string{"a", "b", "c", "d"}
	for _, name := range names[:rapid.IntRange(0, len(names)).Draw(t, "objects")] {
		w.Objects = append(w.Objects, drawObject(t, name))
		if kind := rapid.SampledFrom([]AutoscalerKind{"", HorizontalPodAutoscaler, ScaledObject, VerticalPodAutoscaler}).Draw(t, "autoscaler"); kind != "" {
			w.Question.Autoscalers = append(w.Question.Autoscalers, Autoscaler{
				Kind: kind, Namespace: "shop", Name: "of-" + name, Target: GroupKind{"apps", "Deployment"}, TargetName: name,
			})
		}
	}
	for _, user := range someUsers {
		w.Accounts[user] = Existence(rapid.IntRange(0, 2).Draw(t, "existence"))
	}
	return w
}

func drawObject(t *rapid.T, name string) *metav1.ObjectMeta {
	o := object("shop", name, createdAt(time.Duration(rapid.IntRange(1, 100).Draw(t, "age"))*time.Hour))
	if user := rapid.SampledFrom(someUsers).Draw(t, "stamp"); user != "" {
		stamped(user)(o)
	}
	for range rapid.IntRange(0, 5).Draw(t, "entries") {
		age := time.Duration(rapid.IntRange(0, 60).Draw(t, "entryAge")) * time.Hour
		through(rapid.SampledFrom([]string{"", "", "scale", "status"}).Draw(t, "subresource"),
			rapid.SampledFrom(someManagers).Draw(t, "manager"), age, rapid.SampledFrom(someFields).Draw(t, "fields"))(o)
	}
	return o
}

// run surveys; the accounts that a proposal asks for and the world does not
// know exist.
func (w world) run(t *rapid.T) (*Survey, Report, Accounts) {
	s, err := NewSurvey(w.Question)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range w.Objects {
		s.Add(deployment, o)
	}
	accounts := Accounts{}
	for _, a := range s.Candidates() {
		accounts[a] = Exists
		if known, ok := w.Accounts[userOf(a)]; ok {
			accounts[a] = known
		}
	}
	r, err := s.Report(accounts)
	if err != nil {
		t.Fatal(err)
	}
	return s, r, accounts
}

// TestProposal_LeavesNoDriftOfWhomItTrusts applies the proposal to the same
// facts: nothing by a writer that it trusts would have drifted, and a second
// proposal adds nothing.
func TestProposal_LeavesNoDriftOfWhomItTrusts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		_, first, _ := w.run(t)
		w.Question.Draft.Spec.GuardSpec = specOf(first)
		_, second, _ := w.run(t)
		if diff := cmp.Diff(specOf(first), specOf(second)); diff != "" {
			t.Fatalf("the proposal is not stable (-first +second):\n%s", diff)
		}
		trusted := map[string]bool{}
		for _, a := range specOf(first).TrustedWriters.ServiceAccounts {
			trusted[userOf(a)] = true
		}
		for _, found := range slices.Concat(second.Drift, second.Undated) {
			if trusted[found.User] || found.Class == v1alpha1.ActorTrusted {
				t.Fatalf("a write by %q, whom the proposal trusts, would be drift: %+v", found.User, found)
			}
		}
		if diff := cmp.Diff(first.Drift, second.Drift); diff != "" {
			t.Fatalf("the report of the proposal is not the report on it (-first +second):\n%s", diff)
		}
	})
}

// TestProposal_TrustsNobodyForAManagerThatPeopleUse compares with a naive twin:
// who is trusted is exactly who follows from a proven stamp or from the manager
// of a known controller.
func TestProposal_TrustsNobodyForAManagerThatPeopleUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		_, r, accounts := w.run(t)
		for _, a := range specOf(r).TrustedWriters.ServiceAccounts {
			if accounts[a] != Exists || a.Name == "default" || a.Namespace == "kube-system" {
				t.Fatalf("%v is trusted", a)
			}
			if !slices.ContainsFunc(w.Objects, func(o *metav1.ObjectMeta) bool { return speaksFor(w.Question, o, a) }) {
				t.Fatalf("%v is trusted and nothing speaks for it", a)
			}
		}
		if users := specOf(r).TrustedWriters; len(users.Users)+len(users.Groups)+len(users.ServiceAccountNamespaces) > 0 {
			t.Fatalf("more than service accounts is trusted: %+v", users)
		}
		if mode := specOf(r).Mode; !w.Question.Draft.Existing && mode != v1alpha1.GuardModeAudit {
			t.Fatalf("a new guard has mode %s", mode)
		}
	})
}

// speaksFor is written from the rules in prose: the object's stamp names the
// account and a policy was there, or one of the account's own managers wrote.
func speaksFor(q Question, o *metav1.ObjectMeta, a v1alpha1.ServiceAccountReference) bool {
	if o.Annotations[v1alpha1.AnnotationWriter] == "system:serviceaccount:"+a.Namespace+":"+a.Name && !q.Installation.StampedSince.IsZero() {
		return true
	}
	controllers := map[string]string{
		"argocd-controller": "argocd/argocd-application-controller", "kustomize-controller": "flux-system/kustomize-controller",
		"helm-controller": "flux-system/helm-controller",
	}
	return slices.ContainsFunc(o.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return controllers[e.Manager] == a.Namespace+"/"+a.Name
	})
}

// TestReport_IsTheSameInAnyOrder: pages come as the server likes.
func TestReport_IsTheSameInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		_, first, _ := w.run(t)
		w.Objects = rapid.Permutation(w.Objects).Draw(t, "order")
		_, second, _ := w.run(t)
		if diff := cmp.Diff(encode(t, first), encode(t, second)); diff != "" {
			t.Fatalf("report (-in order +shuffled):\n%s", diff)
		}
	})
}

// TestYAML_IsTheGuardWhateverTheNamesHold: names in comments cannot become part
// of the manifest.
func TestYAML_IsTheGuardWhateverTheNamesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for _, o := range w.Objects {
			for i := range o.ManagedFields {
				if rapid.Bool().Draw(t, "odd") {
					o.ManagedFields[i].Manager = rapid.String().Draw(t, "manager")
				}
			}
		}
		_, r, _ := w.run(t)
		manifest, err := r.YAML()
		if err != nil {
			t.Fatal(err)
		}
		var got v1alpha1.SpecGuard
		decodeYAML(t, manifest, &got)
		if diff := cmp.Diff(specOf(r), got.Spec); diff != "" || got.Name != "workloads" || got.Namespace != "shop" {
			t.Fatalf("manifest (-want +got):\n%s\n%s", diff, manifest)
		}
	})
}

func encode(t *rapid.T, r Report) string {
	encoded, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := r.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded) + string(manifest)
}

func FuzzContentPaths(f *testing.F) {
	for _, fields := range someFields {
		f.Add([]byte(fields))
	}
	f.Add([]byte(`{"f:spec":{"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{}},"v:\"x\"":{},"i:3":{}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		fields := &metav1.FieldsV1{}
		fields.SetRawBytes(raw)
		paths, _ := contentPaths(fields)
		for i, p := range paths {
			read, err := canon.ParsePath(p.String())
			if err != nil || !read.Equal(p) {
				t.Errorf("path %q is not what guards can name: %v", p, err)
			}
			if top := p.Segments()[0].Name(); slices.Contains(outsideContent, top) {
				t.Errorf("%q is outside the content", p)
			}
			if i > 0 && paths[i-1].Compare(p) >= 0 {
				t.Errorf("%q does not follow %q", p, paths[i-1])
			}
		}
	})
}

func TestLooksHuman_KnowsWhatPeopleWriteWith(t *testing.T) {
	for manager, want := range map[string]bool{
		"kubectl": true, "kubectl-edit": true, "kubectl-client-side-apply": true, "Kubectl": true, "k9s": true, "Mozilla": true, "oc-patch": true,
		"argocd-server": true, "argocd-controller": false, "helm": false, "pipeline": false, "": false, "octopus": false,
	} {
		if got := LooksHuman(manager); got != want {
			t.Errorf("%q looks human: %v", manager, got)
		}
		if _, known := deployers[strings.ToLower(manager)]; known && want {
			t.Errorf("%q is both a person's program and a controller", manager)
		}
	}
}

func TestSurvey_BoundsWhatItKeepsAndCountsTheRest(t *testing.T) {
	s, err := NewSurvey(question())
	if err != nil {
		t.Fatal(err)
	}
	const extra = 5
	for i := range MaxRows + extra {
		s.Add(deployment, object("shop", fmt.Sprintf("o%06d", i), written(fmt.Sprintf("m%d", i%(maxWriters+extra)), hour, replicas)))
	}
	r, err := s.Report(nil)
	if err != nil {
		t.Fatal(err)
	}
	got := []int{r.Objects, len(r.LastWrites), r.Writes.Total, r.Writes.NotJudged, len(r.Drift), len(r.Undecided)}
	want := []int{MaxRows + extra, MaxRows, MaxRows + extra, extra, MaxWrites, maxWriters + 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects, rows, writes, not judged, drift, undecided (-want +got):\n%s", diff)
	}
}

func TestNewSurvey_RefusesADraftThatIsNoGuard(t *testing.T) {
	empty := question()
	empty.Draft.Spec.Resources = nil
	if _, err := NewSurvey(empty); err == nil || !strings.Contains(err.Error(), "SpecGuard shop/workloads: spec.resources") {
		t.Errorf("a draft without kinds gave %v", err)
	}
	timeless := question()
	timeless.Since = 0
	if _, err := NewSurvey(timeless); err == nil {
		t.Error("a span of nothing was taken")
	}
}
