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
