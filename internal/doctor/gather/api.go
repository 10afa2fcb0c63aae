// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"crypto/x509"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/internal/serve/callers"
)

// authorityKey is that of the authorities in the ConfigMap for callers.
const authorityKey = "ca.crt"

// api reads what callers of the REST API depend on, where it is installed.
func (r *reader) api(ctx context.Context) {
	s := r.snapshot
	if s.HasAPI() != doctor.ReadValue {
		return
	}
	s.API = doctor.API{Addresses: r.apiAddresses(ctx), Authorities: r.apiAuthorities(ctx), Certificate: r.certificate(ctx, doctor.APISecret)}
	issuer := s.APIIssuer()
	if issuer != "" {
		s.API.Trusted = r.trustedIssuer(ctx)
	}
	if r.options.NoProbes {
		return
	}
	s.API.Audience = r.audience(ctx)
	if issuer != "" {
		s.API.Issuer = issuerOf(ctx, newIssuerClient(), issuer)
	}
}

func (r *reader) apiAddresses(ctx context.Context) doctor.Read[int] {
	namespace := r.snapshot.Namespace
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: doctor.APIName}, &corev1.Service{}); err != nil {
		return result(0, "get services in namespace "+namespace, err)
	}
	return r.addresses(ctx, doctor.APIName)
}

func (r *reader) apiAuthorities(ctx context.Context) doctor.Read[[]*x509.Certificate] {
	namespace := r.snapshot.Namespace
	published := &corev1.ConfigMap{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: doctor.APIAuthority}, published)
	if err == nil && published.Data[authorityKey] == "" {
		return doctor.Gone[[]*x509.Certificate]()
	}
	var authorities []*x509.Certificate
	if err == nil {
		authorities, err = doctor.ParseBundle([]byte(published.Data[authorityKey]))
	}
	return result(authorities, "get configmaps in namespace "+namespace, err)
}

// tokenSeconds is how long the token that is tried counts, the least that the API server allows.
const tokenSeconds = 600

// audience asks for a token of the account of the REST API, for the REST API alone, and has it reviewed. The token is not kept.
func (r *reader) audience(ctx context.Context) doctor.Read[doctor.Audience] {
	namespace := r.snapshot.Namespace
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: doctor.APIName}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{callers.Audience}, ExpirationSeconds: new(int64(tokenSeconds))}}
	if err := r.client.SubResource("token").Create(ctx, account, request); err != nil {
		return result(doctor.Audience{}, "create serviceaccounts/token in namespace "+namespace, err)
	}
	accepted, err := r.takes(ctx, request.Status.Token, callers.Audience)
	if err != nil {
		return result(doctor.Audience{}, "create tokenreviews", err)
	}
	asOwn, err := r.takes(ctx, request.Status.Token)
	return result(doctor.Audience{Accepted: accepted, AsOwn: asOwn}, "create tokenreviews", err)
}

// takes tells whether the API server takes a token for audiences, or for itself without any.
func (r *reader) takes(ctx context.Context, token string, audiences ...string) (bool, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
	if err := r.client.Create(ctx, review); err != nil {
		return false, err
	}
	accepted := !slices.ContainsFunc(audiences, func(a string) bool { return !slices.Contains(review.Status.Audiences, a) })
	return review.Status.Authenticated && accepted, nil
}
