// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"slices"
	"testing"
	"time"

	arv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	secrets    = corev1.SchemeGroupVersion.WithResource("secrets")
	configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
)

// inConfigMap is the configuration of a keeper that publishes in a ConfigMap.
func inConfigMap(mode Mode, settle time.Duration) Config {
	return Config{Mode: mode, Namespace: "n", SecretName: "tls", LeaseName: "lease", ConfigMapName: "ca", Names: names, Identity: "me", Settle: settle}
}

func emptySecret(cfg Config) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cfg.Namespace, Name: cfg.SecretName}}
}

// configMap is the one that is published; nil when there is none.
func (i issuer) configMap() *corev1.ConfigMap {
	i.t.Helper()
	o, err := i.client.Tracker().Get(configMaps, i.cfg.Namespace, i.cfg.ConfigMapName)
	if err != nil {
		return nil
	}
	return o.(*corev1.ConfigMap).DeepCopy()
}

func (i issuer) must(err error) {
	i.t.Helper()
	if err != nil {
		i.t.Fatal(err)
	}
}

// vouches says whether the ConfigMap vouches for the served certificate.
func (i issuer) vouches(k *Keeper) bool {
	m, leaf := i.configMap(), serving(k)
	if m == nil || leaf == nil {
		return false
	}
	return verifyAll(leaf, [][]byte{[]byte(m.Data[keyCABundle])}, names, time.Now()) == nil
}

func TestTheBundleIsKeptInAConfigMap(t *testing.T) {
	cfg := inConfigMap(ModeSelfManaged, time.Millisecond)
	k, other := startWith(t, cfg, emptySecret(cfg))
	right := func() bool { return k.Ready() == nil && other.vouches(k) }
	eventually(t, "there is one, and it vouches for the certificate", right)
	for name, spoil := range map[string]func(m *corev1.ConfigMap){
		"somebody empties it":            func(m *corev1.ConfigMap) { m.Data = nil },
		"somebody writes something else": func(m *corev1.ConfigMap) { m.Data[keyCABundle] = "none" },
		"somebody makes it immutable":    func(m *corev1.ConfigMap) { m.Data[keyCABundle], m.Immutable = "none", new(true) },
	} {
		m := other.configMap()
		spoil(m)
		other.must(other.client.Tracker().Update(configMaps, m, m.Namespace))
		eventually(t, name, right)
	}
	other.must(other.client.Tracker().Delete(configMaps, cfg.Namespace, cfg.ConfigMapName))
	eventually(t, "somebody removes it", right)

	before := serving(k)
	other.must(other.client.Tracker().Delete(secrets, cfg.Namespace, cfg.SecretName))
	eventually(t, "a change of authority is forced", func() bool {
		if !other.vouches(k) {
			t.Fatal("what is served is not vouched for")
		}
		return !bytes.Equal(serving(k).Certificate[0], before.Certificate[0])
	})
}

func TestWhatCertManagerIssuedIsPublishedByUs(t *testing.T) {
	const settle = 200 * time.Millisecond
	cfg, now := inConfigMap(ModeCertManager, settle), time.Now()
	k, other := startWith(t, cfg, emptySecret(cfg))
	first := newPair(t, now)
	other.write(first.data(t))
	eventually(t, "it is served and published", func() bool { return isServing(k, first) && k.Ready() == nil && other.vouches(k) })
	renewed := first.reissued(t, now)
	other.write(renewed.data(t))
	eventually(t, "one of the same authority is served", func() bool { return isServing(k, renewed) })

	second := newPair(t, now)
	other.write(second.data(t))
	both := false
	eventually(t, "one of another authority is served", func() bool {
		if !other.vouches(k) {
			t.Fatal("what is served is not vouched for")
		}
		m := other.configMap()
		if isServing(k, renewed) && bytes.Contains([]byte(m.Data[keyCABundle]), second.bundle()) {
			both = true
		}
		return isServing(k, second)
	})
	if !both {
		t.Error("the certificate changed as soon as its authority was published")
	}
	eventually(t, "the authority of before leaves", func() bool { return other.configMap().Data[keyCABundle] == string(second.bundle()) })
	if !isServing(k, second) || k.Ready() != nil {
		t.Errorf("afterwards it serves another one, or is not ready: %v", k.Ready())
	}
	for _, action := range other.client.Actions() {
		if action.GetResource().Resource == "secrets" && !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			t.Errorf("%s of a Secret that cert-manager writes", action.GetVerb())
		}
	}
}

func TestAnIssuerThatTellsNoAuthorityIsNamed(t *testing.T) {
	cfg := inConfigMap(ModeCertManager, time.Millisecond)
	k, other := startWith(t, cfg, emptySecret(cfg))
	data := newPair(t, time.Now()).data(t)
	delete(data, keyCABundle)
	other.write(data)
	eventually(t, "it says so", func() bool {
		err := k.Ready()
		return err != nil && bytes.Contains([]byte(err.Error()), []byte(errNoAuthority.Error()))
	})
}

func TestTheConfigurationOfInjectionsGetsTheBundleToo(t *testing.T) {
	cfg := Config{
		Mode: ModeSelfManaged, Namespace: "n", SecretName: "tls", LeaseName: "lease", ConfigurationName: "plumbline", InjectionName: "plumbline-inject",
		Names: names, Identity: "me", Settle: time.Millisecond,
	}
	m, v := configurations(cfg.ConfigurationName, nil)
	injection, _ := configurations(cfg.InjectionName, nil)
	k, other := startWith(t, cfg, m, v, injection, emptySecret(cfg))
	eventually(t, "it is ready", func() bool { return k.Ready() == nil })
	read := func(resource schema.GroupVersionResource, name string) []byte {
		o, err := other.client.Tracker().Get(resource, "", name)
		other.must(err)
		return o.(*arv1.MutatingWebhookConfiguration).Webhooks[0].ClientConfig.CABundle
	}
	mutating := arv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations")
	if one, two := read(mutating, cfg.ConfigurationName), read(mutating, cfg.InjectionName); len(one) == 0 || !bytes.Equal(one, two) {
		t.Errorf("the bundles are\n%s\nand\n%s", one, two)
	}
}

func TestDecideIssued(t *testing.T) {
	now, settle := time.Now(), time.Minute
	before, after := newPair(t, now).material.Authorities, newPair(t, now).material.Authorities
	expired := newPair(t, now.Add(-2*AuthorityLife)).material.Authorities
	wide := widen(after, [][]byte{Bundle(before), Bundle(expired), Bundle(after)}, now)
	if want := Bundle(append(slices.Clone(after), before...)); !bytes.Equal(Bundle(wide), want) {
		t.Fatalf("a change is published as %d authorities", len(wide))
	}
	tests := map[string]struct {
		wide  int
		since time.Time
		want  int
		next  time.Time
	}{
		"no change":                          {1, now.Add(-time.Hour), 1, now.Add(time.Hour)},
		"a change that is not published":     {2, time.Time{}, 2, now.Add(settle)},
		"one that just was":                  {2, now, 2, now.Add(2 * settle)},
		"one that replicas have acted on":    {2, now.Add(-settle), 2, now.Add(settle)},
		"one that all have been able to see": {2, now.Add(-2 * settle), 1, now.Add(time.Hour)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bundle, next := DecideIssued(after, wide[:tc.wide], tc.since, settle, now)
			if len(bundle) != tc.want || !next.Equal(tc.next) {
				t.Errorf("%d authorities until %s, want %d until %s", len(bundle), next, tc.want, tc.next)
			}
		})
	}
}
