// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

const (
	// leafLife is how long the certificate that Plumbline issues itself is valid.
	leafLife = 7 * 24 * time.Hour
	// freshPercent of its life a certificate has left at least: it is renewed
	// when a third is left, so less than that means that renewal fails.
	freshPercent = 30

	webhookComponent  = "webhook"
	assessorComponent = "assessor"
	// discoveryComponent is that of the discovery server.
	discoveryComponent = "xds"
)

// Certificate is the serving certificate as it is stored.
type Certificate struct{ Leaf *x509.Certificate }

// ParseCertificate reads the first certificate of a Secret's tls.crt. The error
// says that there is none.
func ParseCertificate(raw []byte) (Certificate, error) {
	authorities, err := ParseBundle(raw)
	if err != nil {
		return Certificate{}, err
	}
	return Certificate{Leaf: authorities[0]}, nil
}

// ParseBundle reads the certificates of a PEM file. The error says that there is none, or which cannot be read.
func ParseBundle(raw []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		if block, raw = pem.Decode(raw); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("parsing certificate %d: %w", len(out)+1, err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, errors.New("no certificate in PEM")
	}
	return out, nil
}

const certificateFix = "look at the log of the lease holder, and force a new authority:\n" +
	"kubectl logs -n plumbline-system -l app.kubernetes.io/component=webhook --prefix | grep certificate\n" +
	"kubectl delete secret plumbline-webhook-tls -n plumbline-system"

// checkBundle asks whether the API server trusts what is served.
func checkBundle(s *Snapshot) []Finding {
	if !s.Webhooks.known() {
		return []Finding{s.Webhooks.unknown("which authorities the API server trusts")}
	}
	ours := s.ours()
	if len(ours) == 0 {
		return []Finding{{Severity: Critical, Message: "no webhook is registered that could have a caBundle", Fix: reinstallFix}}
	}
	var out []Finding
	for _, w := range slices.Concat(ours, s.injection()) {
		out = append(out, bundleOf(s, w)...)
	}
	if len(ours) == ourWebhooksCount && !bytes.Equal(ours[0].Client.CABundle, ours[1].Client.CABundle) {
		out = append(out, Finding{Severity: Warning, Object: ours[1].object(), Fix: certificateFix,
			Message: "the two webhooks have different caBundles; that lasts a moment while authorities change, and longer when something overwrites one"})
	}
	return out
}

func bundleOf(s *Snapshot, w *Webhook) []Finding {
	bad := func(format string, args ...any) []Finding {
		return []Finding{{Severity: Critical, Object: w.object(), Fix: certificateFix + "\n" + "if a GitOps tool empties it, see gitops.ignore",
			Message: w.Name + ": " + fmt.Sprintf(format, args...)}}
	}
	if len(w.Client.CABundle) == 0 {
		if w.FailurePolicy == admissionv1.Fail {
			return bad("its caBundle is empty: the API server cannot verify the webhook and refuses pods that ask for a proxy")
		}
		return bad("its caBundle is empty: the API server cannot verify the webhook and goes on without it")
	}
	authorities, err := ParseBundle(w.Client.CABundle)
	if err != nil {
		return bad("its caBundle cannot be read: %v", err)
	}
	if !s.Certificate.present() {
		return bundleWithoutSecret(s, w)
	}
	roots := x509.NewCertPool()
	for _, a := range authorities {
		roots.AddCert(a)
	}
	_, err = s.Certificate.Value.Leaf.Verify(x509.VerifyOptions{
		Roots: roots, DNSName: serviceDNS(w), CurrentTime: s.Now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return bad("its caBundle does not vouch for the certificate in Secret %s: %v", SecretName, err)
	}
	return nil
}

func bundleWithoutSecret(s *Snapshot, w *Webhook) []Finding {
	if s.stamped() {
		return nil // the API server has just verified one of the replicas
	}
	if s.Certificate.State == ReadAbsent {
		return []Finding{{Severity: Critical, Object: "Secret/" + s.Namespace + "/" + SecretName, Fix: reinstallFix,
			Message: "it does not exist or holds no certificate: the webhook cannot serve"}}
	}
	f := s.Certificate.unknown("whether the caBundle of " + w.Name + " vouches for the served certificate")
	f.Object = w.object()
	return []Finding{f}
}

func serviceDNS(w *Webhook) string {
	if w.Client.Service == nil {
		return "" // called by URL: whatever name is in there
	}
	return w.Client.Service.Name + "." + w.Client.Service.Namespace + ".svc"
}

// checkCertificate looks at what each replica says it serves, and at what is stored.
func checkCertificate(s *Snapshot) []Finding {
	var out []Finding
	life := leafLife
	if s.Certificate.present() {
		leaf := s.Certificate.Value.Leaf
		life = leaf.NotAfter.Sub(leaf.NotBefore)
		if f, found := freshness(s, leaf.NotAfter, life); found {
			f.Object = "Secret/" + s.Namespace + "/" + SecretName
			out = append(out, f)
		}
	}
	served, unread := servedCertificates(s, life)
	out = append(out, served...)
	if unread == nil {
		return out
	}
	if s.Certificate.present() && len(out) == 0 {
		unread.Message += fmt.Sprintf(" (the stored certificate is valid until %s)", s.Certificate.Value.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return append(out, *unread)
}

// servedCertificates judges each replica by its own metric. Unread is an Unknown
// finding when some could not be asked.
func servedCertificates(s *Snapshot, life time.Duration) (out []Finding, unread *Finding) {
	if !s.Pods.known() {
		f := s.Pods.unknown("which certificates the replicas serve")
		return nil, &f
	}
	replicas := 0
	for _, pod := range s.Pods.Value {
		if pod.Component != webhookComponent {
			continue
		}
		replicas++
		expiry, found := pod.Metrics.Value[metricExpiry]
		if !found {
			f := pod.Metrics.unknown("which certificate " + pod.Name + " serves")
			unread = &f
			continue
		}
		if f, bad := freshness(s, time.Unix(int64(expiry), 0), life); bad {
			f.Object = "Pod/" + s.Namespace + "/" + pod.Name
			out = append(out, f)
		}
	}
	if replicas == 0 {
		unread = &Finding{Severity: Unknown, Message: "cannot tell which certificates are served: there is no replica of the webhook"}
	}
	return out, unread
}

// freshness judges one certificate. An expiry of 1970 is how a replica says that
// it has none.
func freshness(s *Snapshot, expires time.Time, life time.Duration) (Finding, bool) {
	left := expires.Sub(s.Now)
	switch {
	case expires.Unix() <= 0:
		return Finding{Severity: Critical, Fix: certificateFix, Message: "it has no certificate to serve: the API server's calls fail"}, true
	case left <= 0:
		return Finding{Severity: Critical, Fix: certificateFix,
			Message: fmt.Sprintf("its certificate expired at %s: the API server's calls fail", expires.UTC().Format(time.RFC3339))}, true
	case left*100 < life*freshPercent:
		return Finding{Severity: Warning, Fix: certificateFix,
			Message: fmt.Sprintf("its certificate expires in %s, with less than %d %% of its life left: it should have been renewed", left.Round(time.Minute), freshPercent)}, true
	default:
		return Finding{}, false
	}
}
