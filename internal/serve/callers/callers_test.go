// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/plumbline-dev/plumbline/internal/serve/answers"
)

var errAway = errors.New("the API server is away")

// apiServer answers reviews by the audience.
type apiServer struct {
	answers map[string]authenticationv1.TokenReviewStatus
	away    map[string]bool
	asked   []string
}

func (s *apiServer) Review(_ context.Context, _, audience string) (authenticationv1.TokenReviewStatus, error) {
	s.asked = append(s.asked, audience)
	if s.away[audience] {
		return authenticationv1.TokenReviewStatus{}, errAway
	}
	return s.answers[audience], nil
}

func review(user string, audiences ...string) authenticationv1.TokenReviewStatus {
	return authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: user, Groups: []string{"sre"}}, Audiences: audiences}
}

const ofServer = "https://kubernetes.default.svc"

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newCallers(s *apiServer) (*Callers, *testingclock.FakePassiveClock) {
	now := testingclock.NewFakePassiveClock(noon)
	return New(s, now, answers.NewMetrics().Of("token")), now
}

func TestATokenIsOfTheUserThatTheAPIServerNames(t *testing.T) {
	refused := authenticationv1.TokenReviewStatus{Error: "invalid bearer token"}
	tests := map[string]struct {
		answers map[string]authenticationv1.TokenReviewStatus
		away    string
		user    string
		writes  bool
		err     error
	}{
		"the audience of the API server":              {map[string]authenticationv1.TokenReviewStatus{"": review("alice", ofServer)}, "none", "alice", true, nil},
		"an authenticator that knows no audiences":    {map[string]authenticationv1.TokenReviewStatus{"": review("alice")}, "none", "alice", true, nil},
		"the audience of the API alone":               {map[string]authenticationv1.TokenReviewStatus{"": refused, Audience: review("screen", Audience)}, "none", "screen", false, nil},
		"both audiences":                              {map[string]authenticationv1.TokenReviewStatus{"": review("alice", ofServer), Audience: review("alice", Audience)}, "none", "alice", true, nil},
		"another audience":                            {map[string]authenticationv1.TokenReviewStatus{"": refused, Audience: refused}, "none", "", false, ErrRefused},
		"an audience that is not the one asked for":   {map[string]authenticationv1.TokenReviewStatus{Audience: review("alice", "vault")}, "none", "", false, ErrRefused},
		"no audience where one was asked for":         {map[string]authenticationv1.TokenReviewStatus{Audience: review("alice")}, "none", "", false, ErrRefused},
		"no name":                                     {map[string]authenticationv1.TokenReviewStatus{"": review("", ofServer)}, "none", "", false, ErrRefused},
		"no name for the audience of the API":         {map[string]authenticationv1.TokenReviewStatus{Audience: review("", Audience)}, "none", "", false, ErrRefused},
		"the anonymous user":                          {map[string]authenticationv1.TokenReviewStatus{"": review(anonymous, ofServer)}, "none", "", false, ErrRefused},
		"the anonymous user, for the API":             {map[string]authenticationv1.TokenReviewStatus{Audience: review(anonymous, Audience)}, "none", "", false, ErrRefused},
		"a user of a token that is not authenticated": {map[string]authenticationv1.TokenReviewStatus{"": {User: review("alice").User}}, "none", "", false, ErrRefused},
		"an empty answer":                             {nil, "none", "", false, ErrRefused},
		"an API server that is away":                  {map[string]authenticationv1.TokenReviewStatus{Audience: review("alice", Audience)}, "", "", false, errAway},
		"an API server that goes away":                {map[string]authenticationv1.TokenReviewStatus{"": refused, Audience: review("alice", Audience)}, Audience, "", false, errAway},
		"an API server that is not asked again":       {map[string]authenticationv1.TokenReviewStatus{"": review("alice", ofServer)}, Audience, "alice", true, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, _ := newCallers(&apiServer{answers: tc.answers, away: map[string]bool{tc.away: true}})
			got, err := c.Identify(t.Context(), "secret-token")
			if !errors.Is(err, tc.err) || errors.Is(err, ErrRefused) != (tc.err == ErrRefused) { //nolint:errorlint // the table has the values themselves
				t.Fatalf("got %v, want %v", err, tc.err)
			}
			if tc.err != nil {
				if got != nil {
					t.Errorf("there is a caller: %v", got)
				}
				return
			}
			if got.User.Username != tc.user || got.MayWrite != tc.writes || got.Token() != "secret-token" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// token makes a JSON Web Token that no key has signed; the API server of the tests takes each.
func token(t *testing.T, claims any) string {
	t.Helper()
	raw, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	return "e30." + base64.RawURLEncoding.EncodeToString(raw) + ".c2ln"
}

func TestAnAnswerIsRememberedForAMinuteOrUntilTheTokenEnds(t *testing.T) {
	ends := func(in time.Duration) string { return token(t, map[string]any{"exp": noon.Add(in).Unix()}) }
	tests := map[string]struct {
		token    string
		unknown  bool
		lasts    time.Duration
		requests int // for one question
	}{
		"a token that says no end":           {"opaque", false, time.Minute, 1},
		"a token that ends later":            {ends(time.Hour), false, time.Minute, 1},
		"a token that ends within a minute":  {ends(20 * time.Second), false, 20 * time.Second, 1},
		"a token that ends now":              {ends(0), false, 0, 1},
		"a token whose end is past":          {ends(-time.Hour), false, 0, 1},
		"a token with a fraction of seconds": {token(t, map[string]any{"exp": float64(noon.Unix()) + 20.9}), false, 20 * time.Second, 1},
		"a token whose end is no number":     {token(t, map[string]any{"exp": "soon"}), false, time.Minute, 1},
		"a refusal":                          {"opaque", true, 5 * time.Second, 2},
		"a refusal of a token that ends":     {ends(time.Second), true, 5 * time.Second, 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &apiServer{answers: map[string]authenticationv1.TokenReviewStatus{"": review("alice", ofServer)}}
			if tc.unknown {
				s.answers = nil
			}
			c, now := newCallers(s)
			ask := func(after time.Duration, want int) {
				t.Helper()
				now.SetTime(noon.Add(after))
				if _, err := c.Identify(t.Context(), tc.token); errors.Is(err, ErrRefused) != tc.unknown {
					t.Fatal(err)
				}
				if len(s.asked) != want*tc.requests {
					t.Errorf("%s after the answer the API server was asked %d times, want %d", after, len(s.asked), want*tc.requests)
				}
			}
			ask(0, 1)
			if tc.lasts > 0 {
				ask(tc.lasts-1, 1)
			}
			ask(tc.lasts, 2)
		})
	}
}

func TestAnAnswerIsOfOneTokenAlone(t *testing.T) {
	s := &apiServer{answers: map[string]authenticationv1.TokenReviewStatus{"": review("alice", ofServer)}}
	c, _ := newCallers(s)
	for _, token := range []string{"a", "b", "a", "b"} {
		if got, err := c.Identify(t.Context(), token); err != nil || got.Token() != token {
			t.Errorf("%q: %v, %v", token, got, err)
		}
	}
	if len(s.asked) != 2 {
		t.Errorf("the API server was asked %d times for two tokens", len(s.asked))
	}
}

func TestAnErrorIsNotRemembered(t *testing.T) {
	s := &apiServer{answers: map[string]authenticationv1.TokenReviewStatus{"": review("alice", ofServer)}, away: map[string]bool{"": true}}
	c, _ := newCallers(s)
	if _, err := c.Identify(t.Context(), "a"); !errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
	s.away = nil
	if _, err := c.Identify(t.Context(), "a"); err != nil {
		t.Errorf("the API server is back: %v", err)
	}
}

func TestNoFormattingOfACallerShowsTheToken(t *testing.T) {
	c, _ := newCallers(&apiServer{answers: map[string]authenticationv1.TokenReviewStatus{"": review("alice", ofServer)}})
	caller, err := c.Identify(t.Context(), "secret-token")
	if err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, *caller) + fmt.Sprintf(verb, With(t.Context(), caller)); strings.Contains(text, "secret-token") {
			t.Errorf("%s shows the token: %s", verb, text)
		}
	}
}

func TestAContextHasTheCallerOfItsRequest(t *testing.T) {
	if got := Of(t.Context()); got != nil {
		t.Errorf("a context without a caller has %v", got)
	}
	want := &Caller{User: authenticationv1.UserInfo{Username: "alice"}}
	if got := Of(With(t.Context(), want)); got != want {
		t.Error(cmp.Diff(want.User, got.User))
	}
}

// Whatever a token is, reading its end neither fails nor lets an answer count for longer than a minute.
func FuzzEndOf(f *testing.F) {
	for _, claims := range []string{`{"exp":1772366400}`, `{"exp":1e300}`, `{"exp":-1}`, `{"exp":null}`, `[]`, `{`} {
		f.Add("e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln")
	}
	f.Add("a.b.c")
	f.Add("..")
	f.Fuzz(func(t *testing.T, token string) {
		c, _ := newCallers(&apiServer{})
		if lasts := c.lasts(token, &identity{user: authenticationv1.UserInfo{Username: "alice"}}); lasts < 0 || lasts > knownFor {
			t.Errorf("%q counts for %s", token, lasts)
		}
	})
}
