// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	arv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuer stands in for cert-manager and its CA injector.
type issuer struct {
	t      *testing.T
	client *fake.Clientset
	cfg    Config
}

// pair is what an authority issues.
type pair struct{ material *Material }

func newPair(t *testing.T, now time.Time) pair {
	t.Helper()
	authority, key, err := newAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	return pair{&Material{SignerKey: key, Authorities: append(Material{}.Authorities, authority)}}.reissued(t, now)
}

// reissued is another leaf of the same authority.
func (p pair) reissued(t *testing.T, now time.Time) pair {
	t.Helper()
	leaf, err := newLeaf(now, names, p.material.Authorities[0], p.material.SignerKey)
	if err != nil {
		t.Fatal(err)
	}
	m := *p.material
	m.Leaf = leaf
	return pair{&m}
}

func (p pair) data(t *testing.T) map[string][]byte {
	t.Helper()
	data, err := p.material.Data()
	if err != nil {
		t.Fatal(err)
	}
	delete(data, keyCAKey) // cert-manager never gives that away.
	return data
}

func (p pair) bundle() []byte { return Bundle(p.material.Authorities) }

func (i issuer) write(data map[string][]byte) {
	i.t.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: i.cfg.Namespace, Name: i.cfg.SecretName}, Type: corev1.SecretTypeTLS, Data: data}
	if err := i.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("secrets"), s, s.Namespace); err != nil {
		i.t.Fatal(err)
	}
}

func (i issuer) inject(bundle []byte) {
	i.t.Helper()
	m, v := configurations(i.cfg.ConfigurationName, bundle)
	gv := arv1.SchemeGroupVersion
	if err := i.client.Tracker().Update(gv.WithResource("mutatingwebhookconfigurations"), m, ""); err != nil {
		i.t.Fatal(err)
	}
	if err := i.client.Tracker().Update(gv.WithResource("validatingwebhookconfigurations"), v, ""); err != nil {
		i.t.Fatal(err)
	}
}

func configurations(name string, bundle []byte) (*arv1.MutatingWebhookConfiguration, *arv1.ValidatingWebhookConfiguration) {
	meta := metav1.ObjectMeta{Name: name}
	client := arv1.WebhookClientConfig{CABundle: bundle}
	return &arv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []arv1.MutatingWebhook{{Name: "m.example.com", ClientConfig: client}}},
		&arv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []arv1.ValidatingWebhook{{Name: "v.example.com", ClientConfig: client}}}
}

// startKeeper runs a keeper against a fake API server until the test ends.
func startKeeper(t *testing.T, mode Mode, data map[string][]byte, bundle []byte) (*Keeper, issuer) {
	t.Helper()
	cfg := Config{
		Mode: mode, Namespace: "n", SecretName: "tls", LeaseName: "lease", ConfigurationName: "plumbline",
		DeploymentName: "d", Names: names, Identity: "me", Settle: time.Millisecond,
	}
	m, v := configurations(cfg.ConfigurationName, bundle)
	return startWith(t, cfg, m, v, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cfg.Namespace, Name: cfg.SecretName}, Data: data})
}

// startWith runs a keeper against a fake API server that has some objects.
func startWith(t *testing.T, cfg Config, objects ...runtime.Object) (*Keeper, issuer) {
	t.Helper()
	cfg.FieldManager = "test"
	client := fake.NewClientset(objects...)
	k := NewKeeper(client, cfg, NewClock(quiet()), quiet())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	if !k.watch.waitSynced(ctx) {
		t.Fatal("never synced")
	}
	return k, issuer{t, client, cfg}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	poll.True(t, 20*time.Second, what, condition)
}

func serving(k *Keeper) *tls.Certificate {
	c, err := k.GetCertificate(nil)
	if err != nil {
		return nil
	}
	return c
}

func isServing(k *Keeper, p pair) bool {
	c := serving(k)
	return c != nil && bytes.Equal(c.Certificate[0], p.material.Leaf.Certificate[0])
}

const unusable = `# HELP plumbline_certificate_unusable 1 when the Secret holds a certificate that cannot be served; the one before stays in service.
# TYPE plumbline_certificate_unusable gauge
plumbline_certificate_unusable 1
`

func TestWithCertManagerNothingIsEverWritten(t *testing.T) {
	now := time.Now()
	first := newPair(t, now)
	k, other := startKeeper(t, ModeCertManager, map[string][]byte{}, nil)
	eventually(t, "an empty Secret is named", func() bool { return errors.Is(k.Ready(), ErrNoMaterial) })
	other.write(first.data(t))
	eventually(t, "the first certificate is served", func() bool { return isServing(k, first) })
	if err := k.Ready(); !errors.Is(err, errNotVouched) {
		t.Errorf("without a caBundle: %v", err)
	}
	other.inject(first.bundle())
	eventually(t, "it is ready", func() bool { return k.Ready() == nil })

	renewed := first.reissued(t, now)
	other.write(renewed.data(t))
	eventually(t, "a renewed certificate is served", func() bool { return isServing(k, renewed) })

	// Another authority: the certificate comes first, the bundle later.
	second := newPair(t, now)
	other.write(second.data(t))
	eventually(t, "the Secret was seen", func() bool {
		data, ok := k.watch.secretData()
		return ok && bytes.Equal(data[keyLeaf], second.data(t)[keyLeaf])
	})
	k.observe() // Whatever the watch does meanwhile, this look comes after the change.
	if !isServing(k, renewed) || k.Ready() != nil {
		t.Errorf("a certificate is served for which no bundle vouches; ready: %v", k.Ready())
	}
	other.inject(second.bundle())
	eventually(t, "the new authority's certificate is served", func() bool { return isServing(k, second) && k.Ready() == nil })

	// Rubbish changes nothing but a metric.
	broken := first.data(t)
	broken[keyLeafKey] = second.data(t)[keyLeafKey]
	other.write(broken)
	eventually(t, "a key that does not fit is reported", func() bool {
		err := testutil.CollectAndCompare(k, strings.NewReader(unusable), "plumbline_certificate_unusable")
		return err == nil
	})
	if !isServing(k, second) || k.Ready() != nil {
		t.Errorf("a pair that does not fit interrupts; ready: %v", k.Ready())
	}
	if k.Leading() {
		t.Error("a keeper that only reads holds a lease")
	}
	for _, action := range other.client.Actions() {
		if !slices.Contains([]string{"get", "list", "watch"}, action.GetVerb()) {
			t.Errorf("%s %s", action.GetVerb(), action.GetResource().Resource)
		}
	}
}

func TestReadinessSaysWhatIsWrongWithTheCertificate(t *testing.T) {
	now := time.Now()
	other := newPair(t, now)
	misfit := newPair(t, now).data(t)
	misfit[keyLeafKey] = other.data(t)[keyLeafKey]
	future, past, fine := newPair(t, now.Add(48*time.Hour)), newPair(t, now.Add(-30*24*time.Hour)), newPair(t, now)
	unnamed := fine
	leaf, err := newLeaf(now, []string{"elsewhere.example.com"}, fine.material.Authorities[0], fine.material.SignerKey)
	if err != nil {
		t.Fatal(err)
	}
	m := *fine.material
	m.Leaf = leaf
	unnamed.material = &m
	tests := map[string]struct {
		data   map[string][]byte
		bundle []byte
		want   string
	}{
		"it begins tomorrow: a clock is off": {future.data(t), future.bundle(), "is not valid yet: it begins at"},
		"it has ended":                       {past.data(t), past.bundle(), "has expired: it ended at"},
		"it has another name":                {unnamed.data(t), unnamed.bundle(), "lacks a name: " + names[0]},
		"another authority is published":     {fine.data(t), other.bundle(), "no authority of the caBundle vouches"},
		"its key does not fit":               {misfit, fine.bundle(), "private key does not match public key"},
		"the bundle is rubbish":              {fine.data(t), []byte("rubbish"), "no authority of the caBundle vouches"},
		"there is none":                      {nil, fine.bundle(), "no certificates in the secret"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k, _ := startKeeper(t, ModeCertManager, tc.data, tc.bundle)
			last := ""
			eventually(t, tc.want, func() bool {
				if err := k.Ready(); err != nil {
					last = err.Error()
				}
				return strings.Contains(last, tc.want)
			})
		})
	}
}
