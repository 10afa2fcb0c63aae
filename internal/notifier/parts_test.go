// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"flag"
	"io"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"

	"github.com/plumbline-dev/plumbline/internal/options"
	"github.com/plumbline-dev/plumbline/internal/secrets"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/pkg/notify/deliver"
	redisserver "github.com/plumbline-dev/plumbline/test/harness/server"
)

func TestWants(t *testing.T) {
	on := v1alpha1.Enabled
	tests := map[notify.EventType]v1alpha1.RemediationNotifications{
		notify.PlanCreated: {OnPlanCreated: v1alpha1.PlanCreatedEnabled}, notify.PlanStarted: {OnStarted: on}, notify.PlanCompleted: {OnCompleted: on},
		notify.PlanFailed: {OnFailed: on}, notify.PlanEscalated: {OnEscalated: on},
	}
	for kind, only := range tests {
		for other := range tests {
			if got := Wants(&only, &notify.Event{Type: other}); got != (kind == other) {
				t.Errorf("with %s alone %s is told: %t", kind, other, got)
			}
		}
		if Wants(&v1alpha1.RemediationNotifications{}, &notify.Event{Type: kind}) {
			t.Errorf("%s is told though nobody asked", kind)
		}
	}
	all := &v1alpha1.RemediationNotifications{OnPlanCreated: v1alpha1.PlanCreatedEnabled, OnStarted: on, OnCompleted: on, OnFailed: on, OnEscalated: on}
	if Wants(all, &notify.Event{Type: "PlanBlessed"}) {
		t.Error("an event that nobody knows is told")
	}
}

// A plan that waits for a person waited unseen, because no plan was told by default.
func TestOfWhichNewPlansPeopleAreTold(t *testing.T) {
	for name, test := range map[string]struct {
		says        v1alpha1.PlanCreatedNotification
		waits, want bool
	}{
		"every plan, of one that waits":          {v1alpha1.PlanCreatedEnabled, true, true},
		"every plan, of one that begins":         {v1alpha1.PlanCreatedEnabled, false, true},
		"by default, of one that waits":          {v1alpha1.PlanCreatedIfWaiting, true, true},
		"by default, of one that begins":         {v1alpha1.PlanCreatedIfWaiting, false, false},
		"no plan, of one that waits":             {v1alpha1.PlanCreatedDisabled, true, false},
		"no plan, of one that begins":            {v1alpha1.PlanCreatedDisabled, false, false},
		"a word of tomorrow, of one that waits":  {"Sometimes", true, true},
		"a word of tomorrow, of one that begins": {"Sometimes", false, false},
		"a policy of before, of one that waits":  {"", true, true},
		"a policy of before, of one that begins": {"", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := &v1alpha1.RemediationNotifications{OnPlanCreated: test.says}
			if got := Wants(n, &notify.Event{Type: notify.PlanCreated, Waiting: test.waits}); got != test.want {
				t.Errorf("it is told: %t, want %t", got, test.want)
			}
		})
	}
}

func TestChannels(t *testing.T) {
	url := v1alpha1.SecretKeyReference{Name: "s", Key: "url"}
	to := notify.SecretRef{Name: "s", Key: "url"}
	tests := map[string]struct {
		channel v1alpha1.NotificationChannel
		want    notify.Channel
	}{
		"a chat": {
			v1alpha1.NotificationChannel{Name: "c", Type: v1alpha1.ChannelSlack, Destination: url, Channel: "#ops"},
			notify.Channel{Slack: &notify.SlackChannel{URL: to, Channel: "#ops"}},
		},
		"mail": {
			v1alpha1.NotificationChannel{Name: "c", Type: v1alpha1.ChannelEmail, Destination: url, Recipients: []string{"a@example.com"}},
			notify.Channel{Email: &notify.EmailChannel{Endpoint: to, To: []string{"a@example.com"}}},
		},
		"a webhook": {
			v1alpha1.NotificationChannel{Name: "c", Type: v1alpha1.ChannelWebhook, Destination: url, SigningKey: &v1alpha1.SecretKeyReference{Name: "k", Key: "key"}},
			notify.Channel{Webhook: &notify.WebhookChannel{URL: to, SigningKey: notify.SecretRef{Name: "k", Key: "key"}}},
		},
		"a webhook without a key, which the schema refuses": {
			v1alpha1.NotificationChannel{Name: "c", Type: v1alpha1.ChannelWebhook, Destination: url},
			notify.Channel{Webhook: &notify.WebhookChannel{URL: to}},
		},
		"CloudEvents": {
			v1alpha1.NotificationChannel{Name: "c", Type: v1alpha1.ChannelCloudEvents, Destination: url},
			notify.Channel{CloudEvents: &notify.CloudEventsChannel{URL: to}},
		},
		"CloudEvents with a token and a source": {
			v1alpha1.NotificationChannel{Name: "c", Type: v1alpha1.ChannelCloudEvents, Destination: url, Token: &v1alpha1.SecretKeyReference{Name: "k", Key: "token"}, Source: "urn:a"},
			notify.Channel{CloudEvents: &notify.CloudEventsChannel{URL: to, Token: &notify.SecretRef{Name: "k", Key: "token"}, Source: "urn:a"}},
		},
		"a channel with a minimum severity": {
			v1alpha1.NotificationChannel{Name: "c", Type: v1alpha1.ChannelSlack, Destination: url, MinimumSeverity: v1alpha1.SeverityHigh},
			notify.Channel{Slack: &notify.SlackChannel{URL: to}, MinimumSeverity: v1alpha1.SeverityHigh},
		},
		"a type of later": {v1alpha1.NotificationChannel{Name: "c", Type: "Pager", Destination: url}, notify.Channel{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.want.Name = "nightly/c"
			if diff := cmp.Diff([]notify.Channel{tc.want}, Channels(policyWith(tc.channel))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	tests := map[string]struct {
		args    []string
		want    deliver.Egress
		refused string
	}{
		"the defaults": {nil, deliver.Egress{}, ""},
		"everything": {
			[]string{"--notify-allowed-networks=10.1.0.0/16, fd00::/8", "--notify-plain-http"},
			deliver.Egress{PlainHTTP: true, Allowed: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}}, "",
		},
		"an address without a prefix": {[]string{"--notify-allowed-networks=10.1.2.3"}, deliver.Egress{}, "no '/'"},
		"bits behind the prefix":      {[]string{"--notify-allowed-networks=10.1.2.3/16"}, deliver.Egress{}, "10.1.0.0/16 is meant"},
		"a name":                      {[]string{"--notify-allowed-networks=chat.example"}, deliver.Egress{}, "chat.example"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var o Options
			fs := flag.NewFlagSet("t", flag.ContinueOnError)
			fs.SetOutput(io.Discard)
			o.AddFlags(fs)
			if err := options.Parse(fs, tc.args, func(string) (string, bool) { return "", false }); err != nil {
				t.Fatal(err)
			}
			errs := o.Validate()
			if tc.refused != "" {
				if len(errs) != 1 || errs[0].Field != "--notify-allowed-networks" || !strings.Contains(errs[0].Error(), tc.refused) {
					t.Errorf("refused with %v, want %q", errs, tc.refused)
				}
				return
			}
			got, err := o.Rules()
			if err != nil || len(errs) > 0 {
				t.Fatal(err, errs)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSecretsAreThoseOfOneNamespace(t *testing.T) {
	elsewhere := secret("https://example.com")
	elsewhere.Namespace, elsewhere.Name = "shop", "theirs"
	w := newWorld(t, nil, secret("https://example.com"), elsewhere)
	resolve := secrets.Reader{Live: w.client, Namespace: own}.Resolve
	if got, err := resolve(t.Context(), notify.SecretRef{Name: "hook", Key: "url"}); err != nil || got != "https://example.com\n" {
		t.Errorf("read %q, %v", got, err)
	}
	for _, ref := range []notify.SecretRef{{Name: "theirs", Key: "url"}, {Name: "hook", Key: "nope"}, {Name: "none", Key: "url"}} {
		if got, err := resolve(t.Context(), ref); err == nil || got != "" {
			t.Errorf("%v gave %q", ref, got)
		}
	}
}

// startRedis needs redis-server (Debian package redis-server) in PATH.
func startRedis(t *testing.T, options ...string) *redisserver.Redis {
	t.Helper()
	directory, err := os.MkdirTemp("", "told") //nolint:usetesting // a socket's path has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(directory) })
	r, err := redisserver.StartRedis(t.Context(), directory, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	return r
}

func TestRedisSeen(t *testing.T) {
	// What the chart lets the processes do with these keys, and no more.
	server := startRedis(t, "--user", "default", "on", "nopass", "~*", "+@all", "--user", "plumbline", "on", ">secret", "-@all", "(~plumbline:told:* -@all +set +getex)")
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: server.Socket, Username: "plumbline", Password: "secret", Protocol: 2, DisableIdentity: true, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	admin := server.Client()
	t.Cleanup(func() { _ = admin.Close() })
	seen := NewRedisSeen(client, "plumbline", markKey)
	ctx := t.Context()
	ask := func(channel, id string) bool {
		t.Helper()
		claim, err := seen.Seen(ctx, channel, id)
		if err != nil {
			t.Fatal(err)
		}
		return claim == deliver.Proven
	}
	if ask("a/b", "evt_1") {
		t.Error("it was told before anything was")
	}
	if err := seen.Mark(ctx, "a/b", "evt_1"); err != nil {
		t.Fatal(err)
	}
	if !ask("a/b", "evt_1") || ask("a/b", "evt_2") || ask("a/c", "evt_1") {
		t.Error("it is not this pair alone that was told")
	}
	keys := admin.Keys(ctx, "*").Val()
	if len(keys) != 1 || !strings.HasPrefix(keys[0], "plumbline:told:") {
		t.Fatalf("keys: %v", keys)
	}
	admin.Expire(ctx, keys[0], Remembered/2)
	if !ask("a/b", "evt_1") || admin.TTL(ctx, keys[0]).Val() < Remembered-patience {
		t.Errorf("asking does not keep it: %v are left", admin.TTL(ctx, keys[0]).Val())
	}
	admin.FlushAll(ctx)
	if ask("a/b", "evt_1") {
		t.Error("a flushed Redis remembers")
	}
	server.Kill()
	if claim, err := seen.Seen(ctx, "a/b", "evt_1"); err == nil || claim != deliver.NotTold {
		t.Errorf("a dead Redis says %v, %v", claim, err)
	}
	if err := seen.Mark(context.WithoutCancel(ctx), "a/b", "evt_1"); err == nil {
		t.Error("a dead Redis noted it")
	}
}

func TestWhatWasToldBeforeARestartIsNotToldAgain(t *testing.T) {
	server, r := startRedis(t), receive(t)
	e := event(notify.PlanCompleted, "1")
	for range 2 {
		client := server.Client()
		w := newWorld(t, func(c *Config) {
			trusting(r)(c)
			c.Seen = NewRedisSeen(client, "plumbline", markKey)
		}, secret(r.URL), policyWith(hook("hook")))
		w.Notify(e)
		w.Close(t.Context()) // waits until it is told
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r.until(t, e.ID())
}
