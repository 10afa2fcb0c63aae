// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// show copies the fields of a kind into a type of this package, and take copies them back. A field of
// this package has its counterpart by its Go name, or by the tag `kind:"Name"`; fields without a
// counterpart, or with the tag `kind:"-"`, are left to the function of the object. Both sides change
// in step: a field whose types do not fit panics, and each test that has the object finds that.
func show(to, from any) {
	c := copier{showing: true}
	c.structs(reflect.ValueOf(to).Elem(), reflect.Indirect(reflect.ValueOf(from)))
}

// take is the other way round; an error names the word that the kind does not know.
func take(to, from any) error {
	c := copier{}
	c.structs(reflect.ValueOf(to).Elem(), reflect.Indirect(reflect.ValueOf(from)))
	return c.err
}

// copier copies values of this package and of kinds into each other.
type copier struct {
	showing bool
	err     error
}

// structs walks the fields of the side that belongs to this package.
func (c *copier) structs(to, from reflect.Value) {
	ours, kind := to, from
	if !c.showing {
		ours, kind = from, to
	}
	for i := range ours.NumField() {
		field := ours.Type().Field(i)
		if field.Anonymous && field.Tag.Get("kind") == "" && ours.Field(i).Kind() == reflect.Struct {
			c.pair(ours.Field(i), kind, c.structs)
			continue
		}
		name := field.Name
		if tag := field.Tag.Get("kind"); tag != "" {
			name = tag
		}
		if counterpart := kind.FieldByName(name); name != "-" && counterpart.IsValid() {
			c.pair(ours.Field(i), counterpart, c.values)
		}
	}
}

// pair copies in the direction of c.
func (c *copier) pair(ours, kind reflect.Value, do func(to, from reflect.Value)) {
	if c.showing {
		do(ours, kind)
		return
	}
	do(kind, ours)
}

func (c *copier) values(to, from reflect.Value) {
	switch {
	case to.Type() == from.Type():
		to.Set(from)
	case c.special(to, from):
	default:
		c.nested(to, from)
	}
}

// nested copies values that have others within them.
func (c *copier) nested(to, from reflect.Value) {
	switch [2]reflect.Kind{to.Kind(), from.Kind()} {
	case [2]reflect.Kind{reflect.Pointer, reflect.Pointer}:
		if !from.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
			c.values(to.Elem(), from.Elem())
		}
	case [2]reflect.Kind{reflect.Slice, reflect.Slice}:
		c.slices(to, from)
	case [2]reflect.Kind{reflect.Map, reflect.Map}:
		c.maps(to, from)
	case [2]reflect.Kind{reflect.Struct, reflect.Struct}:
		c.structs(to, from)
	case [2]reflect.Kind{reflect.Pointer, reflect.Struct}:
		if !from.IsZero() { // an object that a kind has empty is absent
			to.Set(reflect.New(to.Type().Elem()))
			c.values(to.Elem(), from)
		}
	case [2]reflect.Kind{reflect.Struct, reflect.Pointer}:
		if !from.IsNil() {
			c.values(to, from.Elem())
		}
	default:
		panic(fmt.Sprintf("%s cannot be copied into %s", from.Type(), to.Type()))
	}
}

func (c *copier) slices(to, from reflect.Value) {
	if from.IsNil() {
		return
	}
	to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
	for i := range from.Len() {
		c.values(to.Index(i), from.Index(i))
	}
}

func (c *copier) maps(to, from reflect.Value) {
	if from.IsNil() {
		return
	}
	to.Set(reflect.MakeMapWithSize(to.Type(), from.Len()))
	for entry := from.MapRange(); entry.Next(); {
		value := reflect.New(to.Type().Elem()).Elem()
		c.values(value, entry.Value())
		to.SetMapIndex(entry.Key().Convert(to.Type().Key()), value)
	}
}

// special copies values that the two sides spell differently; false if the types are none of these.
func (c *copier) special(to, from reflect.Value) bool {
	switch source := from.Interface().(type) {
	case metav1.Time:
		return setTime(to, source.Time)
	case *metav1.Time:
		return source != nil && setTime(to, source.Time) || to.Type() == reflect.TypeFor[*time.Time]()
	case metav1.Duration:
		if to.Kind() == reflect.Float64 {
			to.SetFloat(float64(secondsOf(source.Duration)))
			return true
		}
		to.Set(reflect.ValueOf(Duration{source.Duration}))
		return true
	case Seconds:
		to.Set(reflect.ValueOf(source.duration()))
		return true
	case Duration:
		to.Set(reflect.ValueOf(metav1.Duration{Duration: source.Duration}))
		return true
	case v1alpha1.Percentage:
		to.SetFloat(percentOf(source))
		return true
	case v1alpha1.Rate:
		return setRate(to, source)
	case v1alpha1.Toggle:
		return setToggle(to, source)
	case bool:
		return c.takeToggle(to, source)
	case float64:
		return takePercentage(to, source)
	}
	return c.word(to, from)
}

func setTime(to reflect.Value, at time.Time) bool {
	if at.IsZero() {
		return true
	}
	at = at.UTC()
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.ValueOf(&at))
	} else {
		to.Set(reflect.ValueOf(at))
	}
	return true
}

// setRate leaves a rate that is not known absent.
func setRate(to reflect.Value, rate v1alpha1.Rate) bool {
	if number := rateOf(rate); number != nil {
		to.Set(reflect.ValueOf(number))
	}
	return true
}

// rateOf returns a rate as a number; nil for a rate that is not known.
func rateOf(rate v1alpha1.Rate) *float64 {
	number, err := strconv.ParseFloat(string(rate), 64)
	if err != nil {
		return nil
	}
	return &number
}

func setToggle(to reflect.Value, toggle v1alpha1.Toggle) bool {
	on := toggle == v1alpha1.Enabled
	switch {
	case to.Kind() == reflect.Bool:
		to.SetBool(on)
	case toggle != "": // a pointer tells an absent toggle from one that is off
		to.Set(reflect.ValueOf(&on))
	}
	return true
}

func (c *copier) takeToggle(to reflect.Value, on bool) bool {
	if to.Type() != reflect.TypeFor[v1alpha1.Toggle]() {
		return false
	}
	toggle := v1alpha1.Disabled
	if on {
		toggle = v1alpha1.Enabled
	}
	to.SetString(string(toggle))
	return true
}

func takePercentage(to reflect.Value, percent float64) bool {
	if to.Type() != reflect.TypeFor[v1alpha1.Percentage]() {
		return false
	}
	to.Set(reflect.ValueOf(percentage(percent)))
	return true
}

// word copies between a [Word] and an enum.
func (c *copier) word(to, from reflect.Value) bool {
	if to.CanAddr() {
		if word, ok := reflect.TypeAssert[spelled](to.Addr()); ok && from.Kind() == reflect.String {
			word.spell(from.String())
			return true
		}
	}
	if to.Kind() == reflect.String && from.Kind() == reflect.String {
		text := from.String()
		if from.CanAddr() {
			if word, ok := reflect.TypeAssert[spelled](from.Addr()); ok {
				value, err := word.parse()
				if err != nil && c.err == nil {
					c.err = err
				}
				text = value
			}
		}
		to.SetString(text)
		return true
	}
	if to.Kind() == reflect.String && from.Kind() == reflect.Pointer && to.Type() == reflect.TypeFor[v1alpha1.Toggle]() {
		return from.IsNil() || c.takeToggle(to, from.Elem().Bool())
	}
	return false
}

// percentOf returns a percentage as a number; 0 for a text that is none, which no kind has.
func percentOf(p v1alpha1.Percentage) float64 {
	number, err := strconv.ParseFloat(p.String(), 64)
	if err != nil {
		return 0
	}
	return number
}

// percentage returns a number as a kind has it: whole, or a text. The API server refuses more than two decimals.
func percentage(percent float64) v1alpha1.Percentage {
	if percent == math.Trunc(percent) && math.Abs(percent) <= math.MaxInt32 {
		return v1alpha1.Percent(int32(percent))
	}
	return v1alpha1.Percentage{IntOrString: intstr.FromString(strconv.FormatFloat(percent, 'f', -1, 64))}
}
