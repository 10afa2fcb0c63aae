// SPDX-License-Identifier: Apache-2.0

package readiness

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon/canontest"
)

func TestOf(t *testing.T) {
	for name, e := range examples {
		t.Run(name, func(t *testing.T) {
			got, message := Of([]byte(e.object), e.gvk)
			if got != e.want || message == "" || strings.HasSuffix(message, ".") {
				t.Errorf("it is %s (%s), want %s", got, message, e.want)
			}
		})
	}
}

// equivalents are the answers of kstatus that mean the same.
var equivalents = map[State][]answer{
	Ready:    {current},
	NotReady: {inProgress, failed, terminating},
	Unknown:  {refused},
}

func TestEveryDifferenceFromKstatusIsExplained(t *testing.T) {
	differences := 0
	for name, e := range examples {
		differs := !slices.Contains(equivalents[e.want], e.kstatus)
		if differs != (e.because != "") {
			t.Errorf("%s: %s here, %q by kstatus, explained by %q", name, e.want, e.kstatus, e.because)
		}
		if !differs {
			continue
		}
		differences++
		// To call ready what kstatus does not is the dangerous direction.
		if e.want == Ready && !strings.Contains(name, "paused") && !strings.Contains(name, "renewed by deletion") {
			t.Errorf("%s: ready here, %s by kstatus", name, e.kstatus)
		}
	}
	if differences == 0 {
		t.Error("nothing was compared")
	}
}

// A controller says in several places what it has done. Of has to read all of them.
func TestTheWordsOfAControllerDecide(t *testing.T) {
	deployment := func(spec, progressing string) string {
		return `{"metadata":{"generation":2},"spec":{` + spec + `},"status":{"observedGeneration":2,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[` +
			progressing + `,` + availableCondition + `]}}`
	}
	const updated = `{"type":"Progressing","status":"True","reason":"ReplicaSetUpdated"}`
	stalled := func(says string) string {
		return `{"metadata":{"generation":1},"status":{"conditions":[{"type":"Stalled","status":"True"` + says + `}]}}`
	}
	budget := func(condition string) string {
		return `{"metadata":{"generation":1},"status":{"observedGeneration":1,"conditions":[{"type":"DisruptionAllowed",` + condition + `}]}}`
	}
	type told struct {
		State   State
		Message string
	}
	tests := map[string]struct {
		gvk    canon.GVK
		object string
		want   told
	}{
		"a deployment that names no replicas has one": {deployments, deployment(`"progressDeadlineSeconds":600`, rolledOut), told{Ready, "all 1 replicas are of this spec, ready and available"}},
		"a rollout that is over by its reason alone": {
			deployments, deployment(`"progressDeadlineSeconds":600`, `{"type":"Progressing","status":"False","reason":"NewReplicaSetAvailable"}`), told{NotReady, "its rollout is not over: NewReplicaSetAvailable"},
		},
		"a deployment that is expressly not paused":       {deployments, deployment(`"paused":false,"progressDeadlineSeconds":600`, updated), told{NotReady, "its rollout is not over: ReplicaSetUpdated"}},
		"a deployment that is paused by a text":           {deployments, deployment(`"paused":"true","progressDeadlineSeconds":600`, updated), told{NotReady, "its rollout is not over: ReplicaSetUpdated"}},
		"an object without a generation is of no older":   {widgets, `{"metadata":{},"status":{"observedGeneration":7,"conditions":[{"type":"Ready","status":"True"}]}}`, told{Ready, "it says that it is ready"}},
		"a budget whose controller has counted":           {budgets, budget(`"status":"True","reason":"SufficientPods"`), told{Ready, "its controller has counted its pods"}},
		"a budget whose controller cannot count":          {budgets, budget(`"status":"False","reason":"SyncFailed","message":"no scale"`), told{NotReady, "it does not count: no scale"}},
		"a message comes before its reason":               {widgets, stalled(`,"reason":"Quota","message":"no room"`), told{NotReady, "it is stalled: no room"}},
		"a reason stands for a message":                   {widgets, stalled(`,"reason":"Quota","message":""`), told{NotReady, "it is stalled: Quota"}},
		"a condition without either is told to be silent": {widgets, stalled(``), told{NotReady, "it is stalled: it does not say why"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state, message := Of([]byte(test.object), test.gvk)
			if diff := cmp.Diff(test.want, told{state, message}); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeReadIsUnknown(t *testing.T) {
	for name, object := range map[string]string{
		"nothing":            ``,
		"half an object":     `{"metadata":{"generation":1`,
		"a list":             `[]`,
		"a key twice":        `{"status":{},"status":{}}`,
		"something behind":   `{} {}`,
		"invalid characters": "{\"a\":\"\xff\"}",
	} {
		for _, gvk := range []canon.GVK{deployments, cronJobs, configMaps, widgets} {
			if got, message := Of([]byte(object), gvk); got != Unknown {
				t.Errorf("%s of %s is %s (%s)", name, gvk.Kind, got, message)
			}
		}
	}
}

func TestNumbersThatAreNone(t *testing.T) {
	for name, count := range map[string]string{
		"a text": `"3"`, "a fraction": `2.5`, "null": `null`, "more than there can be": `99999999999999999999`,
	} {
		object := `{"metadata":{"generation":2},"spec":{"replicas":3},"status":{"observedGeneration":2,"replicas":3,"updatedReplicas":` + count +
			`,"readyReplicas":3,"availableReplicas":3,"conditions":[` + rolledOut + `,` + availableCondition + `]}}`
		if got, message := Of([]byte(object), deployments); got == Ready {
			t.Errorf("%s counts as replicas: %s", name, message)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	object := `{"metadata":{"generation":1},"status":{"conditions":[{"type":"Stalled","status":"True","message":"` + strings.Repeat("long ", 1000) + `"}]}}`
	if _, message := Of([]byte(object), widgets); len(message) > maxQuoted+64 {
		t.Errorf("the message has %d bytes", len(message))
	}
}

func TestKindsOfKubernetesWithoutARuleAreReadyAsStored(t *testing.T) {
	for _, gvk := range []canon.GVK{
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"},
		{Version: "v1", Kind: "ServiceAccount"},
	} {
		if got, message := Of([]byte(`{"metadata":{"name":"a"}}`), gvk); got != Ready {
			t.Errorf("a %s is %s (%s)", gvk.Kind, got, message)
		}
	}
	for _, group := range []string{"apps.example.com", "gateway.networking.k8s.io", "x-k8s.io"} {
		if got, message := Of([]byte(`{"metadata":{"name":"a"}}`), canon.GVK{Group: group, Version: "v1", Kind: "Deployment"}); got != Unknown {
			t.Errorf("a kind of %s is %s (%s)", group, got, message)
		}
	}
}

// What a fuzzer finds is Ready only if somebody said so: the object is whole, is
// not being deleted, and its controller has seen its generation if it says which.
func FuzzOf(f *testing.F) {
	for _, e := range examples {
		f.Add([]byte(e.object), e.gvk.Group, e.gvk.Kind)
	}
	f.Fuzz(func(t *testing.T, object []byte, group, kind string) {
		gvk := canon.GVK{Group: group, Version: "v1", Kind: kind}
		state, message := Of(object, gvk)
		if state != Ready && state != NotReady && state != Unknown || message == "" {
			t.Fatalf("%q (%q)", state, message)
		}
		if again, _ := Of(object, gvk); again != state {
			t.Fatalf("%s, then %s", state, again)
		}
		doc, err := canon.Parse(object, gvk)
		if err != nil {
			if state != Unknown {
				t.Fatalf("what cannot be read is %s", state)
			}
			return
		}
		if at := doc.Root().Get("metadata").Get("deletionTimestamp"); state == Ready && at.Kind() == canon.String && at.Text() != "" {
			t.Fatalf("ready while it is being deleted: %s", object)
		}
		if group == "apps" && kind == "Deployment" && state == Ready && doc.Root().Get("status").Get("observedGeneration").Kind() != canon.Number {
			t.Fatalf("ready without a controller: %s", object)
		}
	})
}

// BenchmarkOf is what the executor pays for a read; the assessor, which has
// parsed the object already, pays OfDocument alone.
func BenchmarkOf(b *testing.B) {
	body := canontest.Deployment(20 << 10)
	b.Run("20KiB", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			Of(body, deployments)
		}
	})
	b.Run("parsed", func(b *testing.B) {
		doc, err := canon.Parse(body, deployments)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			OfDocument(doc)
		}
	})
	b.Run("parsed and ready", func(b *testing.B) {
		doc, err := canon.Parse([]byte(examples["a deployment that is rolled out"].object), deployments)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			OfDocument(doc)
		}
	})
}
