// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestAConfigurationThatCannotWorkNamesItsField(t *testing.T) {
	for field, change := range map[string]func(*Config){
		"proxyImage":    func(c *Config) { c.ProxyImage = "" },
		"redirectImage": func(c *Config) { c.Mode, c.RedirectImage = Redirect, "" },
		"pullPolicy":    func(c *Config) { c.PullPolicy = "Sometimes" },
		"mode":          func(c *Config) { c.Mode = "tproxy" },
		"uid":           func(c *Config) { c.UID = -1 },
		"tokenLifetime": func(c *Config) { c.TokenLifetime = time.Minute },
		"concurrency":   func(c *Config) { c.Concurrency = 65 },
		"resources": func(c *Config) {
			c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
		},
		"xdsHost": func(c *Config) { c.Bootstrap.XDSHost = "https://xds" },
		"xdsPort": func(c *Config) { c.Bootstrap.XDSPort = 0 },
	} {
		c := installation()
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), field+": ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", field, err)
		}
	}
	blank := installation()
	blank.ProxyImage = "envoy "
	if err := blank.Validate(); err == nil {
		t.Error("an image with a blank was accepted, of which every pod would be refused")
	}
}

func TestTheBoundsOfAConfiguration(t *testing.T) {
	memory := func(c *Config, request, limit string) {
		c.Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(request)}
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(limit)}
	}
	for name, tc := range map[string]struct {
		change func(*Config)
		good   bool
	}{
		"the lowest user":                   {func(c *Config) { c.UID = 1 }, true},
		"the highest user":                  {func(c *Config) { c.UID = 1<<31 - 1 }, true},
		"a user beyond the highest":         {func(c *Config) { c.UID = 1 << 31 }, false},
		"a token of ten minutes":            {func(c *Config) { c.TokenLifetime = 10 * time.Minute }, true},
		"a token of less than ten minutes":  {func(c *Config) { c.TokenLifetime = 10*time.Minute - 1 }, false},
		"one thread":                        {func(c *Config) { c.Concurrency = 1 }, true},
		"64 threads":                        {func(c *Config) { c.Concurrency = 64 }, true},
		"fewer threads than one":            {func(c *Config) { c.Concurrency = -1 }, false},
		"the least memory, all requested":   {func(c *Config) { memory(c, "96Mi", "96Mi") }, true},
		"less than the least memory":        {func(c *Config) { memory(c, "1Mi", "98303Ki") }, false},
		"a request of more than the limit":  {func(c *Config) { memory(c, "97Mi", "96Mi") }, false},
		"an image for redirection, unasked": {func(c *Config) { c.RedirectImage = "" }, true},
		"images are never pulled":           {func(c *Config) { c.PullPolicy = corev1.PullNever }, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := installation()
			tc.change(&c)
			if err := c.Validate(); (err == nil) != tc.good {
				t.Errorf("got %v, want good %t", err, tc.good)
			}
		})
	}
}

func TestTheDefaultsOfAConfiguration(t *testing.T) {
	c := Config{}.withDefaults()
	if c.Mode != Explicit || c.UID != 15700 || c.Concurrency != 2 || c.TokenLifetime != time.Hour {
		t.Errorf("got %+v", c)
	}
	for name, got := range map[string]string{
		"50m": c.Resources.Requests.Cpu().String(), "96Mi": c.Resources.Requests.Memory().String(),
		"1": c.Resources.Limits.Cpu().String(), "256Mi": c.Resources.Limits.Memory().String(),
	} {
		if got != name {
			t.Errorf("got %s, want %s", got, name)
		}
	}
}
