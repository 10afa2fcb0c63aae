// SPDX-License-Identifier: Apache-2.0

package specguard

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/pkg/specguard/diff"
)

// playApply applies a configuration as the API server 1.36 does. means=manager is a server-side
// apply of the given paths; means=config is a kubectl apply of the deployment of all tests with
// the given paths.
func playApply(w *world, d *datadriven.TestData) {
	wr := scriptWrite(d)
	wr.applies = arg(d, "means", "config") == "manager"
	stated := parseChanges(w.t, w.live.Body, w.gvk, d.Input)
	before := w.live.ResourceVersion
	wr.changes = stated
	w.update(wr)
	if w.live.ResourceVersion == before { // a Deployment counts changes of annotations, too
		w.rv++
		w.generation++
		w.live.ResourceVersion, w.live.Generation = strconv.Itoa(w.rv), w.generation
	}
	means := " last-applied"
	if wr.applies {
		means = " manager=" + wr.manager
		w.live.Managers = slices.DeleteFunc(slices.Clone(w.live.Managers), func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == wr.manager && e.Operation == metav1.ManagedFieldsOperationApply
		})
		w.own(wr, nil)
		entry := &w.live.Managers[len(w.live.Managers)-1]
		for _, c := range stated {
			w.moveField(entry, c.Path, true)
		}
	} else {
		w.applied = w.configWith(stated)
	}
	switch {
	case w.policy.inForce:
		w.live.Applied = Applied{Stamp: before + means, By: wr.user}
	case wr.forged != "":
		w.live.Applied = Applied{Stamp: before + means, By: wr.forged}
	}
	w.deliver(d)
}

func (w *world) configWith(stated []diff.Change) []byte {
	w.t.Helper()
	body, skipped, err := diff.Apply(w.parse([]byte(testDeployment)).AppendCanonical(nil), w.gvk, stated)
	if err != nil || len(skipped) > 0 {
		w.t.Fatalf("a configuration with %v: skipped %v: %v", stated, skipped, err)
	}
	return []byte(strings.Replace(string(body), "{", `{"apiVersion":"apps/v1","kind":"Deployment",`, 1))
}

func TestAStampOfAnApplyTellsByWhichMeans(t *testing.T) {
	for stamp, want := range map[string]appliedMeans{
		"":                                   {},
		"12":                                 {},
		"12 last-applied":                    {config: true},
		"12 manager=ci":                      {manager: "ci"},
		"12 last-applied manager=ci":         {config: true, manager: "ci"},
		"12 manager=last-applied x=y":        {manager: "last-applied x=y"},
		"12 last-appliedx":                   {},
		"12 manager=manager=a last-applied":  {manager: "manager=a last-applied"},
		"12 last-applied manager= spaces in": {config: true, manager: " spaces in"},
	} {
		if got := parseApplied(stamp); got != want {
			t.Errorf("%q: %+v, want %+v", stamp, got, want)
		}
	}
}

func TestAnApplyStatesAValueWholeOrNotAtAll(t *testing.T) {
	const (
		container = "/spec/template/spec/containers/[name=app]"
		probe     = container + "/livenessProbe"
	)
	tests := map[string]struct {
		path   string
		live   string // of the container
		config string // of the container
		fields string // of the container, as managedFields have them
		want   bool
	}{
		"the same image": {container + "/image", `"image":"a:2"`, `"image":"a:2"`, `"f:image":{}`, true},
		"no image":       {container + "/image", `"image":"a:2"`, `"tty":true`, `"f:tty":{}`, false},
		"a map with other defaults of the API server": {probe,
			`"livenessProbe":{"tcpSocket":{"port":80},"timeoutSeconds":1,"periodSeconds":10,"successThreshold":1,"failureThreshold":3}`,
			`"livenessProbe":{"tcpSocket":{"port":80}}`, `"f:livenessProbe":{"f:tcpSocket":{"f:port":{}}}`, true},
		"a map with a value of somebody else": {probe,
			`"livenessProbe":{"tcpSocket":{"port":80},"timeoutSeconds":60}`,
			`"livenessProbe":{"tcpSocket":{"port":80}}`, `"f:livenessProbe":{"f:tcpSocket":{"f:port":{}}}`, false},
		"a whole container": {container,
			`"image":"a:2","imagePullPolicy":"IfNotPresent","ports":[{"containerPort":80,"protocol":"TCP"}]`,
			`"image":"a:2","ports":[{"containerPort":80}]`,
			`".":{},"f:name":{},"f:image":{},"f:ports":{".":{},"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}`, true},
		"a whole container with a privilege of somebody else": {container,
			`"image":"a:2","securityContext":{"privileged":true}`, `"image":"a:2"`, `".":{},"f:name":{},"f:image":{}`, false},
		"a pull policy that the image has not by default": {container,
			`"image":"a:latest","imagePullPolicy":"IfNotPresent"`, `"image":"a:latest"`, `".":{},"f:name":{},"f:image":{}`, false},
		"an element whose key has a default": {container + "/ports/[containerPort=80,protocol=TCP]",
			`"ports":[{"containerPort":80,"protocol":"TCP"}]`, `"ports":[{"containerPort":80}]`,
			`"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}}`, true},
		"an element that only somebody else has": {container + "/env",
			`"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]`, `"env":[{"name":"A","value":"1"}]`,
			`"f:env":{".":{},"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}}`, false},
		"an atomic list": {container + "/args", `"args":["a","b"]`, `"args":["a","b"]`, `"f:args":{}`, true},
	}
	gvk := canon.ParseGVK("apps/v1", "Deployment")
	object := func(rest string) string {
		return `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":[{"name":"app",` + rest + `}]}}}}`
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path, err := canon.ParsePath(test.path)
			if err != nil {
				t.Fatal(err)
			}
			live, config := parsed(t, object(test.live), gvk), parsed(t, object(test.config), gvk)
			value := live.Root().Follow(path)
			if !value.Exists() {
				t.Fatalf("%s is not there", path)
			}
			fields := `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{` + test.fields + `}}}}}}`
			entry := metav1.ManagedFieldsEntry{FieldsV1: metav1.NewFieldsV1(fields)}
			got := map[string]bool{"config": configStates(config)(path, value), "manager": managerStates(&entry, gvk)(path, value)}
			if d := cmp.Diff(map[string]bool{"config": test.want, "manager": test.want}, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestAConfigurationOfAnotherValueStatesNothing(t *testing.T) {
	gvk := canon.ParseGVK("apps/v1", "Deployment")
	path := mustPaths("/spec/paused")[0]
	live := parsed(t, `{"spec":{"paused":true}}`, gvk)
	for config, want := range map[string]bool{
		`{"spec":{"paused":true}}`: true, `{"spec":{"paused":false}}`: false, `{"spec":{"paused":"true"}}`: false, `{}`: false,
	} {
		if got := configStates(parsed(t, config, gvk))(path, live.Root().Follow(path)); got != want {
			t.Errorf("%s: %t", config, got)
		}
	}
}

// What is a default for a pod is somebody's value elsewhere.
func TestDefaultsOfPodsAreNoneOfOtherKinds(t *testing.T) {
	gvk := canon.ParseGVK("v1", "Service")
	path := mustPaths("/spec/sessionAffinityConfig")[0]
	live := parsed(t, `{"spec":{"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":1}}}}`, gvk)
	config := parsed(t, `{"spec":{"sessionAffinityConfig":{"clientIP":{}}}}`, gvk)
	if configStates(config)(path, live.Root().Follow(path)) {
		t.Error("a value of somebody else is stated")
	}
}

func parsed(t *testing.T, body string, gvk canon.GVK) *canon.Document {
	t.Helper()
	doc, err := canon.Parse([]byte(body), gvk)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
