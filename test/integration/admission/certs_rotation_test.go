// SPDX-License-Identifier: Apache-2.0

//go:build integration

package admission

import (
	"crypto/x509"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	rotations = 3
	settle    = 2 * time.Second
)

// rotate forces a change of authority and waits until every replica serves a
// certificate of the new one.
func rotate(t *testing.T, r *replicas) (took time.Duration) {
	t.Helper()
	before := make([]*x509.Certificate, len(r.hooks))
	for i, h := range r.hooks {
		var err error
		if before[i], err = servedLeaf(t, h); err != nil {
			t.Fatal(err)
		}
	}
	start := time.Now()
	if err := w.kube.CoreV1().Secrets(ownNamespace).Delete(t.Context(), "plumbline-webhook-tls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Secret is made again", func() bool { return secret(t) != nil })
	for i, h := range r.hooks {
		eventually(t, "a replica serves a certificate of the new authority", func() bool {
			now, err := servedLeaf(t, h)
			return err == nil && now.Issuer.SerialNumber != before[i].Issuer.SerialNumber && now.SerialNumber.Cmp(before[i].SerialNumber) != 0
		})
	}
	return time.Since(start)
}

func TestThreeRotationsUnderLoadLoseNoCall(t *testing.T) {
	// Short-lived connections, so that every certificate is met by many handshakes.
	r := startReplicas(t, 2, "--certificate-settle="+settle.String(), "--connection-age=1s")
	p := newPlace(t, unchanged)
	opened, reviewed := failOpen(t), r.metric("plumbline_admission_reviews_total")
	count, stop := startProbes(t, p, 4)
	eventually(t, "the probes run", func() bool { sent, _, _ := count(); return sent > 20 })
	for n := range rotations {
		sent, _, _ := count()
		took := rotate(t, r)
		if took < settle {
			t.Errorf("rotation %d: the certificate was switched %v after the order, before the bundle had settled for %v", n+1, took, settle)
		}
		eventually(t, "writes go on", func() bool { now, _, _ := count(); return now > sent+50 })
	}
	stop()
	sent, missing, err := count()
	if missing != 0 {
		t.Errorf("%d of %d writes had no stamp; last error %v", missing, sent, err)
	}
	if n := failOpen(t) - opened; n != 0 {
		t.Errorf("the API server gave up on %v calls", n)
	}
	// A create is reviewed twice, by /mutate and by /validate.
	if n := r.metric("plumbline_admission_reviews_total") - reviewed; n < 2*float64(sent) {
		t.Errorf("%v reviews of %d writes", n, sent)
	}
	if n := r.metric("plumbline_admission_handshake_errors_total", `reason="certificate_rejected"`); n != 0 {
		t.Errorf("%v handshakes were refused", n)
	}
	t.Logf("%d rotations under %d writes", rotations, sent)
}
