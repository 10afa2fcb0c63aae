// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// apiServer is the real API.
type apiServer struct{ client rest.Interface }

// NewAPI asks the API server of a configuration. It takes nothing of the client
// limits there: the default of five requests a second would make ten thousand
// proxies wait for half an hour, and [Limits] are the bound.
func NewAPI(config *rest.Config) (API, error) {
	own := rest.CopyConfig(config)
	own.QPS, own.RateLimiter = -1, nil // a negative rate is none
	own.Timeout = patience
	own.APIPath, own.GroupVersion = "/apis", &authenticationv1.SchemeGroupVersion
	own.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("building a client for reviews of tokens: %w", err)
	}
	return apiServer{client}, nil
}

// Keys implements API. That the keys are elsewhere, as the discovery document may
// say, does not matter: the API server has them too.
func (a apiServer) Keys(ctx context.Context) (issuer string, keys []jose.JSONWebKey, err error) {
	var discovered struct {
		Issuer string `json:"issuer"`
	}
	if err := a.get(ctx, "/.well-known/openid-configuration", &discovered); err != nil {
		return "", nil, err
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := a.get(ctx, "/openid/v1/jwks", &set); err != nil {
		return "", nil, err
	}
	for _, raw := range set.Keys {
		// A key of a kind that we do not know is no reason to do without the others.
		if key := (jose.JSONWebKey{}); key.UnmarshalJSON(raw) == nil {
			keys = append(keys, key)
		}
	}
	return discovered.Issuer, keys, nil
}

func (a apiServer) get(ctx context.Context, path string, into any) error {
	// The keys are served as a type of their own.
	raw, err := a.client.Get().AbsPath(path).SetHeader("Accept", "*/*").MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	return nil
}

// Review implements API. The client would log what it sends at its highest
// verbosity, and might quote what it cannot read; both is the token.
func (a apiServer) Review(ctx context.Context, token, audience string) (authenticationv1.TokenReviewStatus, error) {
	asked := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if audience != "" {
		asked.Spec.Audiences = []string{audience}
	}
	var answered authenticationv1.TokenReview
	// A second try is the proxy's, which comes back by itself.
	err := a.client.Post().Resource("tokenreviews").Body(asked).MaxRetries(0).
		Do(klog.NewContext(ctx, logr.Discard())).Into(&answered)
	if err != nil {
		return authenticationv1.TokenReviewStatus{}, quotingNothing(err)
	}
	return answered.Status, nil
}

// quotingNothing keeps of an error what cannot have come out of a body.
func quotingNothing(err error) error {
	if broken := (*url.Error)(nil); errors.As(err, &broken) {
		return broken
	}
	if reason := apierrors.ReasonForError(err); reason != "" {
		return fmt.Errorf("it answered %s", reason)
	}
	return fmt.Errorf("its answer cannot be read (%T)", err)
}
