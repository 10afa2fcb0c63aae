// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Bounds of configuration.
const (
	maxChannels    = 512
	maxChannelName = 400 // the kind, the namespace and the name of a guard, slashes, and 63
	maxRecipients  = 32
	maxSource      = 256
	maxChatChannel = 80
)

// chatChannel is what Slack and Mattermost take: a channel, a person, or an id.
var chatChannel = regexp.MustCompile(`^[#@]?[a-zA-Z0-9][a-zA-Z0-9._-]*$`)

// ValidateChannels checks all channels and that no two have the same name.
func ValidateChannels(channels []Channel, path *field.Path) field.ErrorList {
	if len(channels) > maxChannels {
		return field.ErrorList{field.TooMany(path, len(channels), maxChannels)}
	}
	var errs field.ErrorList
	names := map[string]bool{}
	for i, c := range channels {
		at := path.Index(i)
		errs = append(errs, c.Validate(at)...)
		if names[c.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		}
		names[c.Name] = true
	}
	return errs
}

// Validate tells what is wrong, field by field; nothing when all is well.
func (c Channel) Validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if !nameOK(c.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), c.Name, "1 to 400 visible characters"))
	}
	kinds := 0
	for _, set := range []bool{c.Slack != nil, c.Email != nil, c.Webhook != nil, c.CloudEvents != nil} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds == 0:
		return append(errs, field.Required(path, "one of slack, email, webhook, cloudEvents"))
	case kinds > 1:
		return append(errs, field.Forbidden(path, "only one of slack, email, webhook, cloudEvents"))
	case c.Slack != nil:
		return append(errs, c.Slack.validate(path.Child("slack"))...)
	case c.Email != nil:
		return append(errs, c.Email.validate(path.Child("email"))...)
	case c.Webhook != nil:
		return append(errs, c.Webhook.validate(path.Child("webhook"))...)
	default:
		return append(errs, c.CloudEvents.validate(path.Child("cloudEvents"))...)
	}
}

// nameOK is a name that is one line of a log.
func nameOK(s string) bool {
	visible := func(r rune) bool { return unicode.IsGraphic(r) && r != utf8.RuneError }
	return s != "" && len(s) <= maxChannelName && !strings.ContainsFunc(s, func(r rune) bool { return !visible(r) })
}

func (r SecretRef) validate(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1123Subdomain(r.Name) {
		errs = append(errs, field.Invalid(path.Child("name"), r.Name, problem))
	}
	for _, problem := range validation.IsConfigMapKey(r.Key) {
		errs = append(errs, field.Invalid(path.Child("key"), r.Key, problem))
	}
	return errs
}

func (s *SlackChannel) validate(path *field.Path) field.ErrorList {
	errs := s.URL.validate(path.Child("url"))
	if s.Channel == "" {
		return errs
	}
	if len(s.Channel) > maxChatChannel || !chatChannel.MatchString(s.Channel) {
		errs = append(errs, field.Invalid(path.Child("channel"), s.Channel, "a name such as #ops-alerts, at most 80 characters"))
	}
	return errs
}

func (w *WebhookChannel) validate(path *field.Path) field.ErrorList {
	return append(w.URL.validate(path.Child("url")), w.SigningKey.validate(path.Child("signingKey"))...)
}

func (c *CloudEventsChannel) validate(path *field.Path) field.ErrorList {
	errs := c.URL.validate(path.Child("url"))
	if c.Token != nil {
		errs = append(errs, c.Token.validate(path.Child("token"))...)
	}
	if c.Source != "" && !sourceOK(c.Source) {
		errs = append(errs, field.Invalid(path.Child("source"), c.Source, "a URI-reference of at most 256 characters"))
	}
	return errs
}

// sourceOK holds a source to RFC 3986's characters; url.Parse is more generous.
func sourceOK(s string) bool {
	if len(s) > maxSource || strings.ContainsFunc(s, func(r rune) bool { return !linkRune(r) }) {
		return false
	}
	_, err := url.Parse(s)
	return err == nil
}

func (m *EmailChannel) validate(path *field.Path) field.ErrorList {
	errs, to := m.Endpoint.validate(path.Child("endpoint")), path.Child("to")
	switch {
	case len(m.To) == 0:
		return append(errs, field.Required(to, "at least one recipient"))
	case len(m.To) > maxRecipients:
		return append(errs, field.TooMany(to, len(m.To), maxRecipients))
	}
	for i, recipient := range m.To {
		if !addressOK(recipient) {
			errs = append(errs, field.Invalid(to.Index(i), recipient, "an address such as ops@example.com"))
		}
	}
	return errs
}
