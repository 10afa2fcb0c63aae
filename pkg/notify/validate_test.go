// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

func ref() notify.SecretRef { return notify.SecretRef{Name: "notifications", Key: "url"} }

func good() map[notify.ChannelType]notify.Channel {
	token := ref()
	return map[notify.ChannelType]notify.Channel{
		notify.ChannelSlack:       {Name: "production/ops", Slack: &notify.SlackChannel{URL: ref(), Channel: "#ops-alerts"}},
		notify.ChannelEmail:       {Name: "mail", Email: &notify.EmailChannel{Endpoint: ref(), To: slices.Clone(recipients)}},
		notify.ChannelWebhook:     {Name: "hook", Webhook: &notify.WebhookChannel{URL: ref(), SigningKey: ref()}},
		notify.ChannelCloudEvents: {Name: "events", CloudEvents: &notify.CloudEventsChannel{URL: ref(), Token: &token, Source: "https://eu-1.example"}},
	}
}

func TestChannel_GoodOnesAreGoodAndKnowTheirType(t *testing.T) {
	for kind, c := range good() {
		if errs := c.Validate(field.NewPath("channel")); len(errs) > 0 {
			t.Errorf("%s: %v", kind, errs)
		}
		if c.Type() != kind {
			t.Errorf("%s: type %q", kind, c.Type())
		}
	}
	if got := (notify.Channel{}).Type(); got != "" {
		t.Errorf("no kind at all: type %q", got)
	}
}

// change returns a good channel of the kind, changed.
func change[T any](kind notify.ChannelType, part func(notify.Channel) *T, edit func(*T)) notify.Channel {
	c := good()[kind]
	edit(part(c))
	return c
}

func mailWith(edit func(*notify.EmailChannel)) notify.Channel {
	return change(notify.ChannelEmail, func(c notify.Channel) *notify.EmailChannel { return c.Email }, edit)
}

func slackWith(edit func(*notify.SlackChannel)) notify.Channel {
	return change(notify.ChannelSlack, func(c notify.Channel) *notify.SlackChannel { return c.Slack }, edit)
}

func eventsWith(edit func(*notify.CloudEventsChannel)) notify.Channel {
	return change(notify.ChannelCloudEvents, func(c notify.Channel) *notify.CloudEventsChannel { return c.CloudEvents }, edit)
}

func named(name string) notify.Channel {
	c := good()[notify.ChannelSlack]
	c.Name = name
	return c
}

func TestChannel_Validate(t *testing.T) {
	two := good()[notify.ChannelSlack]
	two.Email = good()[notify.ChannelEmail].Email
	many := make([]string, 33)
	for i := range many {
		many[i] = fmt.Sprintf("a%d@example.com", i)
	}
	cases := map[string]struct {
		channel notify.Channel
		want    []string // type and field of each error
	}{
		"no name":                            {named(""), []string{"FieldValueInvalid c.name"}},
		"a name of two lines":                {named("ops\nalerts"), []string{"FieldValueInvalid c.name"}},
		"a name that is no text":             {named("ops\xff"), []string{"FieldValueInvalid c.name"}},
		"a name with a space":                {named("policy/Ops Alerts"), nil},
		"the longest name":                   {named(strings.Repeat("a", 400)), nil},
		"a name that is too long":            {named(strings.Repeat("a", 401)), []string{"FieldValueInvalid c.name"}},
		"no kind":                            {notify.Channel{Name: "ops"}, []string{"FieldValueRequired c"}},
		"two kinds":                          {two, []string{"FieldValueForbidden c"}},
		"a chat without a URL":               {slackWith(func(s *notify.SlackChannel) { s.URL = notify.SecretRef{} }), []string{"FieldValueInvalid c.slack.url.name", "FieldValueInvalid c.slack.url.key"}},
		"a URL where a Secret is named":      {slackWith(func(s *notify.SlackChannel) { s.URL.Name = "https://hooks.example.com" }), []string{"FieldValueInvalid c.slack.url.name"}},
		"a key that leaves the Secret":       {slackWith(func(s *notify.SlackChannel) { s.URL.Key = "../token" }), []string{"FieldValueInvalid c.slack.url.key", "FieldValueInvalid c.slack.url.key"}},
		"a chat's channel by nobody":         {slackWith(func(s *notify.SlackChannel) { s.Channel = "" }), nil},
		"a person in a chat":                 {slackWith(func(s *notify.SlackChannel) { s.Channel = "@jane.doe" }), nil},
		"a chat's channel with markup":       {slackWith(func(s *notify.SlackChannel) { s.Channel = "<!channel>" }), []string{"FieldValueInvalid c.slack.channel"}},
		"a chat's channel that is too long":  {slackWith(func(s *notify.SlackChannel) { s.Channel = strings.Repeat("a", 81) }), []string{"FieldValueInvalid c.slack.channel"}},
		"a webhook without secrets":          {notify.Channel{Name: "w", Webhook: &notify.WebhookChannel{URL: ref()}}, []string{"FieldValueInvalid c.webhook.signingKey.name", "FieldValueInvalid c.webhook.signingKey.key"}},
		"no token and no source":             {eventsWith(func(c *notify.CloudEventsChannel) { c.Token, c.Source = nil, "" }), nil},
		"a token without a key":              {eventsWith(func(c *notify.CloudEventsChannel) { c.Token.Key = " " }), []string{"FieldValueInvalid c.cloudEvents.token.key"}},
		"a source that is no URI":            {eventsWith(func(c *notify.CloudEventsChannel) { c.Source = "cluster eu 1" }), []string{"FieldValueInvalid c.cloudEvents.source"}},
		"a source with a bad escape":         {eventsWith(func(c *notify.CloudEventsChannel) { c.Source = "/%zz" }), []string{"FieldValueInvalid c.cloudEvents.source"}},
		"no mail server":                     {mailWith(func(m *notify.EmailChannel) { m.Endpoint.Key = "" }), []string{"FieldValueInvalid c.email.endpoint.key"}},
		"a mail server instead of a Secret":  {mailWith(func(m *notify.EmailChannel) { m.Endpoint.Name = "smtp://mail.example.com" }), []string{"FieldValueInvalid c.email.endpoint.name"}},
		"a recipient with a second line":     {mailWith(func(m *notify.EmailChannel) { m.To[0] = "a@example.com\r\nBcc: b@example.com" }), []string{"FieldValueInvalid c.email.to[0]"}},
		"no recipient":                       {mailWith(func(m *notify.EmailChannel) { m.To = nil }), []string{"FieldValueRequired c.email.to"}},
		"more than 32 recipients":            {mailWith(func(m *notify.EmailChannel) { m.To = many }), []string{"FieldValueTooMany c.email.to"}},
		"one recipient of two is none":       {mailWith(func(m *notify.EmailChannel) { m.To[1] = "ops-team" }), []string{"FieldValueInvalid c.email.to[1]"}},
		"a recipient that needs SMTPUTF8":    {mailWith(func(m *notify.EmailChannel) { m.To = []string{"jörg@example.com"} }), []string{"FieldValueInvalid c.email.to[0]"}},
		"a recipient with a quoted part":     {mailWith(func(m *notify.EmailChannel) { m.To = []string{`"a b"@example.com`} }), []string{"FieldValueInvalid c.email.to[0]"}},
		"a recipient in brackets of a group": {mailWith(func(m *notify.EmailChannel) { m.To = []string{"ops: a@example.com, b@example.com;"} }), []string{"FieldValueInvalid c.email.to[0]"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, kindsOf(tc.channel.Validate(field.NewPath("c")))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func kindsOf(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, string(err.Type)+" "+err.Field)
	}
	return out
}

func TestValidateChannels(t *testing.T) {
	many := make([]notify.Channel, 513)
	for i := range many {
		many[i] = named(fmt.Sprintf("ops-%d", i))
	}
	cases := map[string]struct {
		channels []notify.Channel
		want     []string
	}{
		"none":                   {nil, nil},
		"two of different names": {[]notify.Channel{named("a"), named("b")}, nil},
		"two of one name":        {[]notify.Channel{named("a"), named("a")}, []string{"FieldValueDuplicate channels[1].name"}},
		"the second is wrong":    {[]notify.Channel{named("a"), {Name: "b"}}, []string{"FieldValueRequired channels[1]"}},
		"512":                    {many[:512], nil},
		"513":                    {many, []string{"FieldValueTooMany channels"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, kindsOf(notify.ValidateChannels(tc.channels, field.NewPath("channels")))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
