// SPDX-License-Identifier: Apache-2.0

//go:build integration

package attacks

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

// tokens are secrets that can be looked for; each place has one of its own, so
// that a leak says where from.
type tokens struct{ byPlace map[string]string }

func (s *tokens) make(place string) string {
	token := "canary-" + strings.ToLower(rand.Text())
	if s.byPlace == nil {
		s.byPlace = map[string]string{}
	}
	s.byPlace[place] = token
	return token
}

// in names the places whose secret, or its plain SHA-256, stands in a text.
func (s *tokens) in(text string) []string {
	var found []string
	for place, token := range s.byPlace {
		sum, quoted := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(`"`+token+`"`))
		if strings.Contains(text, token) || strings.Contains(text, hex.EncodeToString(sum[:])) || strings.Contains(text, hex.EncodeToString(quoted[:])) {
			found = append(found, place)
		}
	}
	slices.Sort(found)
	return found
}

// hide puts secrets into a Deployment wherever people put them; gen tells those
// of one version from those of the next.
func (s *tokens) hide(d *appsv1.Deployment, gen string) {
	c := &d.Spec.Template.Spec.Containers[0]
	c.Env = []corev1.EnvVar{
		{Name: "API_TOKEN", Value: s.make(gen + " env by its name")},
		{Name: "DATABASE", Value: "postgres://me:" + s.make(gen+" env with a URL") + "@db/x"},
	}
	c.Args = []string{"--password=" + s.make(gen+" argument"), "--api-key", s.make(gen + " argument behind its flag")}
	c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
		Path: "/", Port: intstr.FromInt32(80), HTTPHeaders: []corev1.HTTPHeader{{Name: "Authorization", Value: s.make(gen + " header")}},
	}}}
	d.Spec.Template.Annotations = map[string]string{
		"kubectl.kubernetes.io/last-applied-configuration": `{"env":"` + s.make(gen+" last-applied of the template") + `"}`,
		"vault/token": s.make(gen + " annotation of the template"),
	}
	d.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"env":"` + s.make(gen+" last-applied") + `"}`, "note": s.make(gen + " annotation")}
}

// warnings keeps what the API server tells a writer.
type warnings struct {
	mu   sync.Mutex
	said []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

func (w *warnings) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = nil
}

func (w *warnings) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.said, "\n")
}

// secretPlace is a place with a Deployment and a ConfigMap full of secrets, both
// changed by mallory since.
func secretPlace(t *testing.T) (p *place, hidden *tokens, told *warnings) {
	t.Helper()
	p, hidden, told = newPlace(t), &tokens{}, &warnings{}
	p.guard(func(g *v1alpha1.SpecGuard) {
		g.Spec.Resources = append(g.Spec.Resources, v1alpha1.GuardedResource{APIVersion: "v1", Kind: "ConfigMap"})
	})
	p.deploy("web", func(d *appsv1.Deployment) { hidden.hide(d, "before:") })
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "settings"}, Data: map[string]string{"config.yaml": hidden.make("before: data")}}
	p.must(as(t, ci).Create(t.Context(), settings))
	p.untilOf("configmaps", "", "settings", "InSync")

	c := apiserver.Impersonate(config, mallory, roots)
	c.WarningHandler, c.WarningHandlerWithContext = told, nil
	writer := clientOf(t, c)
	d := p.live("web")
	hidden.hide(d, "after:")
	p.must(writer.Update(t.Context(), d))
	settings.Data["config.yaml"] = hidden.make("after: data")
	settings.BinaryData = map[string][]byte{"key": []byte(hidden.make("after: binary data"))}
	p.must(writer.Update(t.Context(), settings))
	for _, of := range [][3]string{{"deployments", "apps", "web"}, {"configmaps", "", "settings"}} {
		p.eventually("mallory's change of "+of[2]+" is found", func() error {
			b, err := p.baselineOf(of[0], of[1], of[2])
			if err != nil {
				return err
			}
			if b.Status.State != v1alpha1.StateDrifted {
				return fmt.Errorf("it is %q", guarded.Describe(b))
			}
			return nil
		})
	}
	p.recorded(mallory, specguard.OperationUpdate, 2)
	return p, hidden, told
}

// S11: whatever has the look of a secret stays where it was.
func TestNoSecretLeavesItsObject(t *testing.T) {
	p, hidden, told := secretPlace(t)
	for what, text := range map[string]string{
		"the Baselines":                 p.everything(&v1alpha1.BaselineList{}),
		"the events":                    p.everything(&eventsv1.EventList{}),
		"the guard":                     p.everything(&v1alpha1.SpecGuardList{}),
		"the log of the webhook":        hook.Said(),
		"the log of the assessor":       judge.Said(),
		"the metrics of the webhook":    p.page(hook.Metrics),
		"the metrics of the assessor":   p.page(judge.Metrics),
		"Redis":                         p.everythingInRedis(),
		"what the writer was told":      told.text(),
		"what status says":              p.says("status", "-o", "yaml"),
		"what blame says":               p.says("blame", "deployment/web", "-o", "wide"),
		"what blame says of data":       p.says("blame", "configmap/settings", "-o", "json"),
		"what diff says":                p.says("diff", "deployment/web"),
		"what diff says, structured":    p.says("diff", "deployment/web", "-o", "json"),
		"what diff says of data":        p.says("diff", "configmap/settings"),
		"what history says":             p.says("history", "deployment/web", "-o", "wide"),
		"what would be accepted":        p.says("accept", "deployment/web", "--dry-run"),
		"the stored objects' own stamp": strings.Join([]string{p.live("web").Annotations[v1alpha1.AnnotationSpecHash], p.live("web").Annotations[v1alpha1.AnnotationWriter]}, "\n"),
	} {
		t.Run(what, func(t *testing.T) {
			if text == "" {
				t.Fatal("nothing was read")
			}
			if found := hidden.in(text); len(found) > 0 {
				t.Errorf("it holds the secrets of %q", found)
			}
			if what != "Redis" && strings.Contains(text, redisPassword) {
				t.Error("it holds the password of Redis")
			}
		})
	}
}

// everything lists a kind in the namespace, as JSON.
func (p *place) everything(list client.ObjectList) string {
	p.t.Helper()
	p.must(admin.List(p.t.Context(), list, client.InNamespace(p.namespace)))
	raw, err := json.Marshal(list)
	p.must(err)
	return string(raw)
}

func (p *place) page(address string) string {
	p.t.Helper()
	_, page, err := hook.Get(p.t.Context(), address, "/metrics")
	p.must(err)
	return page
}

func (p *place) everythingInRedis() string {
	p.t.Helper()
	keys, err := stream.Keys(p.t.Context(), "*").Result()
	p.must(err)
	var all strings.Builder
	for _, key := range keys {
		if kind := stream.Type(p.t.Context(), key).Val(); kind != "stream" {
			p.t.Errorf("%s is a %s; this test reads streams", key, kind)
			continue
		}
		messages, err := stream.XRange(p.t.Context(), key, "-", "+").Result()
		p.must(err)
		fmt.Fprintln(&all, key, messages)
	}
	return all.String()
}

// says runs the plugin as somebody who may read everything.
func (p *place) says(args ...string) string {
	p.t.Helper()
	stdout, stderr, _ := p.plugin("auditor", []string{roots}, args...)
	return stdout + stderr
}

// S11: who may see what. Bodies hold what their objects hold, so they are for
// those who may change the object; view has the findings, redacted.
func TestViewSeesFindingsAndNoBodies(t *testing.T) {
	p, hidden, _ := secretPlace(t)
	key := client.ObjectKey{Namespace: p.namespace, Name: specguard.RevisionName(specguard.BaselineName("deployments", "apps", "web"), 1)}
	vera, eve := p.person("view"), p.person("edit")
	if err := only(t, vera).Get(t.Context(), key, &v1alpha1.BaselineRevision{}); !apierrors.IsForbidden(err) {
		t.Errorf("view reads a body: %v", err)
	}
	if err := only(t, vera).List(t.Context(), &v1alpha1.BaselineRevisionList{}, client.InNamespace(p.namespace)); !apierrors.IsForbidden(err) {
		t.Errorf("view lists bodies: %v", err)
	}
	if err := only(t, eve).Get(t.Context(), key, &v1alpha1.BaselineRevision{}); err != nil {
		t.Errorf("edit, who may read the object, does not read its body: %v", err)
	}
	for _, args := range [][]string{{"status", "-o", "yaml"}, {"blame", "deployment/web", "-o", "json"}, {"diff", "deployment/web"}, {"history", "deployment/web", "--revision", "1"}} {
		stdout, stderr, code := p.plugin(vera, nil, args...)
		if found := hidden.in(stdout + stderr); len(found) > 0 {
			t.Errorf("%q shows view the secrets of %q", args, found)
		}
		needsBody := args[0] == "diff" || args[0] == "history"
		if needsBody && (code == 0 || !strings.Contains(stderr, "baselinerevisions") || stdout != "") {
			t.Errorf("%q answers view %d:\n%s%s", args, code, stdout, stderr)
		}
		if !needsBody && code != 0 {
			t.Errorf("%q answers view %d:\n%s", args, code, stderr)
		}
	}
	// Another namespace's is nobody's business there, nor is the cluster's.
	elsewhere := newPlace(t)
	if err := only(t, elsewhere.person("admin")).List(t.Context(), &v1alpha1.BaselineList{}, client.InNamespace(p.namespace)); !apierrors.IsForbidden(err) {
		t.Errorf("the owner of another namespace lists Baselines: %v", err)
	}
	if err := only(t, vera).List(t.Context(), &v1alpha1.BaselineList{}); !apierrors.IsForbidden(err) {
		t.Errorf("view of one namespace lists the Baselines of all: %v", err)
	}
}

// S11, what remains: view sees the changed values of a kind that it may not
// read, where they have no look of a secret. So guard.resources is to list such a
// kind only with rbac.aggregate off; the page on threats says so.
func TestViewReadsChangedValuesOfAKindThatTheChartGuardsAndViewDoesNotCover(t *testing.T) {
	p := newPlace(t)
	p.guard(guardWidgets)
	w := widget(p.namespace, "web", map[string]any{"level": "ordinary", "password": "canary-of-a-widget"})
	p.must(as(t, ci).Create(t.Context(), w))
	p.untilOf("widgets", "example.org", "web", "InSync")
	w.Object["spec"] = map[string]any{"level": "what only the platform may read", "password": "canary-of-a-widget-2"}
	p.must(as(t, mallory).Update(t.Context(), w))
	p.untilOf("widgets", "example.org", "web", "Drifted: Changed /spec/level by mallory (Untrusted, WriterStamp); Changed /spec/password by mallory (Untrusted, WriterStamp)")
	vera := p.person("view")
	if err := only(t, vera).Get(t.Context(), client.ObjectKeyFromObject(w), w.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Fatalf("reading it directly: %v", err)
	}
	stdout, _, _ := p.plugin(vera, nil, "blame", "widgets.example.org/web", "-o", "json")
	if strings.Contains(stdout, "canary-of-a-widget") {
		t.Errorf("a password is shown:\n%s", stdout)
	}
	if !strings.Contains(stdout, "what only the platform may read") {
		t.Error("it is not shown any more, so the page on threats can say so")
	}
}

// S11: the password of Redis and the accounts' tokens are in files, and in no log.
func TestTheProcessesLogNoneOfTheirOwnSecrets(t *testing.T) {
	for _, account := range []string{"plumbline-webhook", "plumbline-assessor"} {
		kubeconfig, err := clientcmd.LoadFromFile(filepath.Join(workDir, account))
		if err != nil {
			t.Fatal(err)
		}
		for name, said := range map[string]string{"webhook": hook.Said(), "assessor": judge.Said()} {
			if said == "" {
				t.Errorf("the %s logs nothing", name)
			}
			if strings.Contains(said, kubeconfig.AuthInfos["u"].Token) || strings.Contains(said, redisPassword) {
				t.Errorf("the log of the %s holds the token of %s, or the password of Redis", name, account)
			}
		}
	}
}
