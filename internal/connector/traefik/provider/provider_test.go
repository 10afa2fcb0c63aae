// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/internal/connector/traefik"
	"github.com/plumbline-dev/plumbline/pkg/traffic"
)

func fetchConfig(t *testing.T, p *Provider, token string) (status int, body string) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	request.Header.Set("Authorization", "Bearer "+token)
	recorder := httptest.NewRecorder()
	p.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.String()
}

// A configuration without endpoints would be in force at once, so an error of the sources of endpoints is status 503.
func TestAConfigurationThatCannotBeKnownIsNoEmptyOne(t *testing.T) {
	for name, tc := range map[string]struct {
		opens  bool
		change func(*Config)
		status int
	}{
		"a provider that is open":           {true, nil, http.StatusOK},
		"a provider that is not open":       {false, nil, http.StatusServiceUnavailable},
		"endpoints that cannot be read":     {true, func(c *Config) { c.Endpoints = fixedEndpoints{errors.New("unsynced")} }, http.StatusServiceUnavailable},
		"a provider without a token":        {true, func(c *Config) { c.Token = "" }, http.StatusUnauthorized},
		"a provider with a rotated token":   {true, func(c *Config) { c.Token = "another" }, http.StatusUnauthorized},
		"a provider without ports to serve": {true, func(c *Config) { c.Served = nil }, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(configOf(tc.change))
			if tc.opens {
				p.Open()
			}
			if status, body := fetchConfig(t, p, "a-token"); status != tc.status {
				t.Errorf("answered is %d: %s", status, body)
			}
		})
	}
	if status, _ := fetchConfig(t, New(configOf(func(c *Config) { c.Token = "" })), ""); status != http.StatusUnauthorized {
		t.Errorf("an empty token is answered with %d", status)
	}
}

func TestTheSplitsOutliveAChangeOfTheConfiguration(t *testing.T) {
	p := openProvider()
	p.ReplaceConfig(configOf(func(c *Config) {
		c.Token = "rotated"
		c.Served = append(c.Served, traefik.Served{Service: web, Port: 81})
	}))
	status, body := fetchConfig(t, p, "rotated")
	for _, part := range []string{"plb_shop_web_80__7", "plb_shop_web_81__7"} {
		if status != http.StatusOK || !strings.Contains(body, part) {
			t.Errorf("%s is not in the answer %d: %s", part, status, body)
		}
	}
}

// A restore can follow a newer decision about the release.
func TestARestoreTakesNoReleaseBack(t *testing.T) {
	p := openProvider()
	p.RestoreSplit(autumn, splitOf(6))
	if _, body := fetchConfig(t, p, "a-token"); !strings.Contains(body, "plb_shop_web_80__7") {
		t.Errorf("after a restore of an older split the configuration is %s", body)
	}
	err := p.Router(autumn).Apply(t.Context(), splitOf(6))
	if later := (*traffic.LaterError)(nil); !errors.As(err, &later) || later.Sequence != 7 {
		t.Errorf("an older split is applied: %v", err)
	}
}

func TestAReleaseThatIsGoneLeavesTheMemory(t *testing.T) {
	p := openProvider()
	p.ForgetRelease(autumn)
	if len(p.releases) != 0 {
		t.Errorf("kept are %v", p.releases)
	}
	if _, body := fetchConfig(t, p, "a-token"); strings.Contains(body, "__7") || !strings.Contains(body, "10.1.0.9:80") {
		t.Errorf("without the release the configuration is %s", body)
	}
}

func TestWithoutTheAPIOfEachTraefikASplitIsAcceptedAtBest(t *testing.T) {
	for name, tc := range map[string]struct {
		programs []Program
		want     traffic.Knowledge
		outcomes bool
	}{
		"each has an API": {[]Program{{Name: "a", URL: "http://a"}, {Name: "b", URL: "http://b"}}, traffic.Proven, true},
		"one has none":    {[]Program{{Name: "a", URL: "http://a"}, {Name: "b"}}, traffic.Accepted, false},
	} {
		t.Run(name, func(t *testing.T) {
			can := New(configOf(func(c *Config) { c.Programs = tc.programs })).Router(autumn).Capabilities()
			if can.Knowledge != tc.want || can.Outcomes != tc.outcomes {
				t.Errorf("the capabilities are %+v", can)
			}
		})
	}
}
