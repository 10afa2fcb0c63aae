// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/test/harness/golden"
)

// wholePod is the golden file that the others say their difference from.
const wholePod = "deployment.yaml"

// TestGolden has one file for each kind of pod, in which the name of a file stands for a
// bootstrap. The integration tests have a real API server take every one of them.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "pods", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no pods to inject (%v)", err)
	}
	directory := filepath.Join("testdata", "injected")
	golden.Check(t, filepath.Join(directory, wholePod), withProxy(t, filepath.Join("testdata", "pods", wholePod)))
	for _, file := range files {
		name := filepath.Base(file)
		if name == wholePod {
			continue
		}
		t.Run(strings.TrimSuffix(name, ".yaml"), func(t *testing.T) {
			golden.CheckDifference(t, wholePod, filepath.Join(directory, strings.TrimSuffix(name, ".yaml")+".diff"), withProxy(t, file))
		})
	}
}

// withProxy is what becomes of the pod of a file.
func withProxy(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(raw, &pod); err != nil {
		t.Fatal(err)
	}
	pod.APIVersion, pod.Kind = "v1", "Pod"
	d := Decide(&pod, nil, installation())
	if d.Outcome != Inject {
		t.Fatalf("it is not injected: %+v", d)
	}
	out, err := Pod(&pod, installation(), d.Mode)
	if err != nil {
		t.Fatal(err)
	}
	nameBootstraps(t, out)
	text, err := yaml.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// nameBootstraps puts the name of its golden file in the place of each bootstrap.
func nameBootstraps(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	names := map[string]string{}
	for name, c := range bootstraps() {
		raw, err := Bootstrap(c)
		if err != nil {
			t.Fatal(err)
		}
		names[literal(raw)] = name
	}
	for _, c := range pod.Spec.InitContainers {
		for i, arg := range c.Args {
			if name, known := names[arg]; known {
				c.Args[i] = "<bootstrap " + name + ">"
			}
		}
	}
}

// anyPod is a pod that asks, with more or less of what an injection touches.
func anyPod(t *rapid.T) *corev1.Pod {
	some := func(prefix string) []corev1.Container {
		var out []corev1.Container
		for i := range rapid.IntRange(0, 2).Draw(t, prefix) {
			c := corev1.Container{Name: fmt.Sprintf("%s-%d", prefix, i), Image: "x", Args: []string{"$(HOME)"}}
			if prefix == "init" && rapid.Bool().Draw(t, "restarts") {
				c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			}
			out = append(out, c)
		}
		return out
	}
	pod := askingPod(func(p *corev1.Pod) {
		p.Spec.InitContainers = some("init")
		p.Spec.Containers = append(p.Spec.Containers, some("app")...)
		if rapid.Bool().Draw(t, "volumes") {
			p.Spec.Volumes = []corev1.Volume{{Name: "data"}}
		}
		if rapid.Bool().Draw(t, "annotations") {
			p.Annotations["example.com/a~b"] = "kept"
		}
		if rapid.Bool().Draw(t, "only the namespace asks") {
			p.Labels = nil
		}
	})
	return pod
}

func anyMode(t *rapid.T) Mode { return rapid.SampledFrom([]Mode{Explicit, Redirect}).Draw(t, "mode") }

func must[T any](t *rapid.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func TestNothingOfThePodChangesButWhatIsAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod, mode := anyPod(t), anyMode(t)
		before := pod.DeepCopy()
		out := must[*corev1.Pod](t)(Pod(pod, installation(), mode))
		if diff := cmp.Diff(before, pod); diff != "" {
			t.Fatalf("the argument changed (-want +got):\n%s", diff)
		}
		ours := map[Mode][]string{Explicit: {ProxyContainer}, Redirect: {RedirectContainer, ProxyContainer}}[mode]
		for i, name := range ours {
			if out.Spec.InitContainers[i].Name != name {
				t.Fatalf("init container %d is %s, want %s", i, out.Spec.InitContainers[i].Name, name)
			}
		}
		// Taking ours away again gives the pod.
		out.Spec.InitContainers = out.Spec.InitContainers[len(ours):]
		out.Spec.Volumes = out.Spec.Volumes[:len(out.Spec.Volumes)-1]
		delete(out.Labels, LabelProxy)
		delete(out.Annotations, annotationToken)
		delete(out.Annotations, annotationCA)
		if !equality.Semantic.DeepEqual(out, before) {
			t.Fatalf("(-want +got):\n%s", cmp.Diff(before, out))
		}
	})
}

func TestASecondInjectionChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod, mode := anyPod(t), anyMode(t)
		once := must[*corev1.Pod](t)(Pod(pod, installation(), mode))
		d := Decide(once, map[string]string{LabelInject: Enabled}, installation())
		if want := (Decision{Outcome: Leave, Reason: AlreadyInjected, Mode: mode}); d != want {
			t.Fatalf("%+v, want %+v", d, want)
		}
		// Not even under another configuration.
		other := installation()
		other.ProxyImage = "docker.io/example/envoy:next"
		twice := must[*corev1.Pod](t)(Pod(once, other, anyMode(t)))
		if diff := cmp.Diff(once, twice); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if patch := must[[]byte](t)(Patch(once, other, mode)); patch != nil {
			t.Fatalf("a patch: %s", patch)
		}
	})
}

func TestThePatchMakesTheSamePodAndKeepsFieldsOfTomorrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod, mode := anyPod(t), anyMode(t)
		// What the API server sends may have fields that this version does not know.
		var raw map[string]any
		if err := json.Unmarshal(must[[]byte](t)(json.Marshal(pod)), &raw); err != nil {
			t.Fatal(err)
		}
		spec := raw["spec"].(map[string]any)
		spec["fieldOfTomorrow"] = "kept"
		spec["containers"].([]any)[0].(map[string]any)["fieldOfTomorrow"] = "kept"

		patch := must[[]byte](t)(Patch(pod, installation(), mode))
		if again := must[[]byte](t)(Patch(pod.DeepCopy(), installation(), mode)); string(again) != string(patch) {
			t.Fatal("equal input gave other bytes")
		}
		decoded := must[jsonpatch.Patch](t)(jsonpatch.DecodePatch(patch))
		patched := must[[]byte](t)(decoded.Apply(must[[]byte](t)(json.Marshal(raw))))
		if n := strings.Count(string(patched), `"fieldOfTomorrow":"kept"`); n != 2 {
			t.Fatalf("of two unknown fields %d are left", n)
		}
		var got corev1.Pod
		if err := json.Unmarshal(patched, &got); err != nil {
			t.Fatal(err)
		}
		want := must[*corev1.Pod](t)(Pod(pod, installation(), mode))
		if !equality.Semantic.DeepEqual(want, &got) {
			t.Fatalf("(-want +got):\n%s", cmp.Diff(want, &got))
		}
	})
}

func TestTheKubeletFindsNothingToExpandInTheBootstrap(t *testing.T) {
	const text = `{"regex":"^$(POD_NAME)$$"}`
	escaped := literal([]byte(text))
	if strings.Contains(escaped, "$") {
		t.Errorf("%s has a dollar", escaped)
	}
	var want, got any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(escaped), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("it means something else (-want +got):\n%s", diff)
	}
}

func TestAConfigurationThatCannotWorkIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Config)
		mode   Mode
		want   string
	}{
		"no image":                     {func(c *Config) { c.ProxyImage = "" }, Explicit, "needs an image"},
		"no image that sets the rules": {func(c *Config) { c.RedirectImage = "" }, Redirect, "sets the rules"},
		"no control plane":             {func(c *Config) { c.Bootstrap.XDSHost = "not a name" }, Explicit, "neither a DNS name nor an address"},
		"no port":                      {func(c *Config) { c.Bootstrap.XDSPort = 0 }, Explicit, "port 0"},
		"a token that the API server does not give": {func(c *Config) { c.TokenLifetime = 60e9 }, Explicit, "cannot live for 1m0s"},
		"a mode that is none":                       {func(*Config) {}, "tproxy", `"tproxy"`},
	} {
		t.Run(name, func(t *testing.T) {
			c := installation()
			tc.change(&c)
			_, err := Patch(askingPod(func(*corev1.Pod) {}), c, tc.mode)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q in it", err, tc.want)
			}
		})
	}
}
