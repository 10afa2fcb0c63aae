// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// S8: a control character is one byte in etcd and six in JSON, so an object that
// the API server stores can be larger than a review may be. The review is counted
// as not judged, and the watch finds the change all the same.
func TestAReviewTooLargeToBeJudgedIsCountedAndItsChangeFound(t *testing.T) {
	p := newPlace(t)
	p.guard()
	p.deploy("web")
	before := p.metric("plumbline_admission_unassessed_total", `reason="too_large"`)
	d := p.live("web")
	d.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("\x01", 1_250_000)} // 7.5 MB of JSON
	d.Spec.Template.Spec.Containers[0].Image = "registry.example/evil:1"
	p.must(as(t, mallory).Update(t.Context(), d))
	if n := p.metric("plumbline_admission_unassessed_total", `reason="too_large"`) - before; n < 1 {
		t.Errorf("%v reviews are counted as too large", n)
	}
	p.untilIs("web", "Drifted: Changed "+imagePath+" by mallory (Untrusted, WriterStamp); Added /spec/template/spec/containers/[name=app]/args by mallory (Untrusted, WriterStamp)")
}

// S8: larger still, and the assessor cannot hash it either. It says so, keeps
// what is authorized, and finds the rest when the object is readable again.
func TestAnObjectTooLargeToBeHashedIsUnknownAndNotInSync(t *testing.T) {
	p := newPlace(t)
	p.guard()
	p.deploy("web")
	d := p.live("web")
	d.Spec.Template.Spec.Containers[0].Args = []string{strings.Repeat("\x01", 1_450_000)} // 8.7 MB of JSON
	d.Spec.Template.Spec.Containers[0].Image = "registry.example/evil:1"
	p.must(as(t, mallory).Update(t.Context(), d))
	b := p.untilIs("web", "Unknown")
	p.sayWhy(b)
	p.must(as(t, mallory).Patch(t.Context(), p.named("web"), client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/template/spec/containers/0/args"}]`))))
	// The stamp names the last writer, who need not have made this change.
	p.untilIs("web", "Drifted: Changed "+imagePath+" by mallory (Unknown, WriterStamp)")
}

// S8: what was changed while nothing could be read is not authorized by the next
// write of CI, which finds it there.
func TestWhatWasChangedUnreadablyIsNotAuthorizedByTheNextTrustedWrite(t *testing.T) {
	p := newPlace(t)
	p.guard(guardWidgets)
	w := widget(p.namespace, "web", map[string]any{"size": int64(1), "image": "good"})
	p.must(as(t, ci).Create(t.Context(), w))
	p.untilOf("widgets", "example.org", "web", "InSync")
	deep := w.DeepCopy()
	deep.Object["spec"] = map[string]any{"size": int64(1), "image": "evil", "deep": nested(400)}
	p.must(as(t, mallory).Update(t.Context(), deep))
	p.untilOf("widgets", "example.org", "web", "Unknown")
	p.must(as(t, ci).Patch(t.Context(), w, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"deep":null,"size":2}}`))))
	b := p.untilOf("widgets", "example.org", "web",
		"Drifted: Changed /spec/image by "+ci+" (Unknown, WriterStamp); Changed /spec/size by "+ci+" (Unknown, WriterStamp)")
	if b.Spec.Authorized.Number != 1 {
		t.Errorf("revision %d is authorized", b.Spec.Authorized.Number)
	}
}

// sayWhy checks that a Baseline in state Unknown tells people, and that nothing
// was authorized.
func (p *place) sayWhy(b *v1alpha1.Baseline) {
	p.t.Helper()
	ready := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || ready.Message == "" {
		p.t.Errorf("Ready is %+v", ready)
	}
	if b.Spec.Authorized == nil || b.Spec.Authorized.Number != 1 {
		p.t.Errorf("authorized is %+v", b.Spec.Authorized)
	}
	stdout, _, code := p.plugin("auditor", []string{roots}, "status", "--exit-code")
	if code != 2 || !strings.Contains(stdout, "Unknown") {
		p.t.Errorf("status --exit-code answers %d:\n%s", code, stdout)
	}
}

// nested is {"a":{"a":… of a depth.
func nested(depth int) map[string]any {
	inner := map[string]any{"x": "evil"}
	for range depth {
		inner = map[string]any{"a": inner}
	}
	return inner
}

func widget(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.org/v1", "kind": "Widget", "metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec,
	}}
}

func guardWidgets(g *v1alpha1.SpecGuard) {
	g.Spec.Resources = []v1alpha1.GuardedResource{{APIVersion: "example.org/v1", Kind: "Widget"}}
}

// S8: nested deeper than the hash goes.
func TestAnObjectNestedTooDeepIsUnknownAndNotInSync(t *testing.T) {
	p := newPlace(t)
	p.guard(guardWidgets)
	w := widget(p.namespace, "web", map[string]any{"size": int64(1)})
	p.must(as(t, ci).Create(t.Context(), w))
	p.untilOf("widgets", "example.org", "web", "InSync")
	before := p.metric("plumbline_admission_unassessed_total", `reason="object"`)
	deep := w.DeepCopy()
	deep.Object["spec"] = nested(400)
	p.must(as(t, mallory).Update(t.Context(), deep))
	if n := p.metric("plumbline_admission_unassessed_total", `reason="object"`) - before; n < 1 {
		t.Errorf("%v reviews are counted", n)
	}
	p.sayWhy(p.untilOf("widgets", "example.org", "web", "Unknown"))
	p.must(as(t, mallory).Patch(t.Context(), w, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"a":null,"size":2}}`))))
	p.untilOf("widgets", "example.org", "web", "Drifted: Changed /spec/size by mallory (Unknown, WriterStamp)")
}

// S8: spellings that the API server takes are found as what they are stored as.
func TestOddEncodingsHideNothing(t *testing.T) {
	p := newPlace(t)
	p.guard()
	const head = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"app",`
	tests := map[string]struct {
		name, container string
		refused         bool // by the API server itself
	}{
		"invalid UTF-8":           {name: "utf8", container: "\"image\":\"registry.example/shop:1\",\"args\":[\"\xff\xfe\"]"},
		"a lone surrogate":        {name: "surrogate", container: `"image":"registry.example/shop:1","args":["\ud800"]`},
		"escaped keys and values": {name: "escaped", container: "\"\\u0069mage\":\"registry.example/\\u0065vil:1\""},
		"keys twice":              {name: "twice", container: `"image":"registry.example/shop:1","image":"registry.example/evil:1"`},
		"keys in another case":    {name: "case", container: `"Image":"registry.example/evil:1"`, refused: true},
		"a NUL":                   {name: "nul", container: `"image":"registry.example/shop:1","args":["\u0000"]`},
		"a byte order mark":       {name: "bom", container: "\"image\":\"registry.example/shop:1\",\"args\":[\"\ufeff\"]"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := &place{t: t, namespace: p.namespace}
			p.deploy(test.name)
			code, answer := p.put(mallory, test.name, strings.Replace(head, `"web"},"spec"`, `"`+test.name+`"},"spec"`, 1)+test.container+`}]}}}}`)
			if test.refused {
				if code != http.StatusUnprocessableEntity && code != http.StatusBadRequest {
					t.Errorf("%d %s", code, answer)
				}
				return
			}
			if code != http.StatusOK {
				t.Fatalf("%d %s", code, answer)
			}
			p.eventually("it is drift by mallory", func() error {
				b, err := p.baseline(test.name)
				if err != nil {
					return err
				}
				if got := guarded.Describe(b); !strings.HasPrefix(got, "Drifted: ") || !strings.Contains(got, " by mallory (Untrusted, WriterStamp)") {
					return fmt.Errorf("it is %q", got)
				}
				return nil
			})
		})
	}
}

// put replaces a Deployment by bytes that no client library would write.
func (p *place) put(user, name, body string) (code int, answer string) {
	p.t.Helper()
	c := apiserver.Impersonate(config, user, roots)
	transport, err := rest.HTTPClientFor(c)
	p.must(err)
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPut,
		apiURL("/apis/apps/v1/namespaces/"+p.namespace+"/deployments/"+name), strings.NewReader(body))
	p.must(err)
	request.Header.Set("Content-Type", "application/json")
	response, err := transport.Do(request)
	p.must(err)
	defer func() { _ = response.Body.Close() }() // only read
	raw := make([]byte, 400)
	n, _ := response.Body.Read(raw) // as much as comes: for people
	return response.StatusCode, string(raw[:n])
}

// S8: an object made before anybody looked, with an owner of the kind that
// controllers are, and one that says it belongs to another namespace's object.
func TestAForeignObjectDoesNotPassForAControllersProduct(t *testing.T) {
	elsewhere := newPlace(t)
	stranger := deployment(elsewhere.namespace, "stranger")
	elsewhere.must(admin.Create(t.Context(), stranger))
	p := newPlace(t)
	p.guard()
	for name, owner := range map[string]metav1.OwnerReference{
		"by-a-deployment":      {APIVersion: "apps/v1", Kind: "Deployment", Name: "x", UID: "u", Controller: new(true)},
		"by-a-replicaset":      {APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "x", UID: "u", Controller: new(true)},
		"by-another-namespace": {APIVersion: "apps/v1", Kind: "Deployment", Name: stranger.Name, UID: stranger.UID, Controller: new(true)},
		"by-a-cronjob":         {APIVersion: "batch/v1", Kind: "CronJob", Name: "x", UID: "u", Controller: new(true)},
	} {
		t.Run(name, func(t *testing.T) {
			p := &place{t: t, namespace: p.namespace}
			p.must(as(t, mallory).Create(t.Context(), ownedDeployment(p.namespace, name, owner)))
			p.untilIs(name, "Drifted: Added object by mallory (Untrusted, WriterStamp)")
		})
	}
}

func ownedDeployment(namespace, name string, owner metav1.OwnerReference) *appsv1.Deployment {
	d := deployment(namespace, name)
	d.OwnerReferences = []metav1.OwnerReference{owner}
	return d
}
