package provider

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"modelgate"
	"modelgate/internal/provider/reqscan"
	"modelgate/internal/provider/usage"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	names := reqscan.NewNames(OrderNames()...)
	film := func(seconds, count int64, size string) usage.RequestedUnits {
		return usage.RequestedUnits{Seconds: seconds * 1e6, Count: count, Size: size}
	}
	for _, tt := range []struct {
		order *Order
		body  string
		want  usage.RequestedUnits
	}{
		{openAIFilms, `{}`, film(4, 1, "720x1280")},
		{openAIFilms, `{"seconds":"8","size":"1280x720"}`, film(8, 1, "1280x720")},
		{openAIFilms, `{"seconds":7.2}`, film(8, 1, "720x1280")},
		{openAIFilms, `{"seconds":null,"duration":12,"n":7,"resolution":"4k"}`, film(4, 1, "720x1280")},
		{geminiFilms, `{"parameters":{"durationSeconds":4,"sampleCount":2,"resolution":"1080p"}}`, film(4, 2, "1080p")},
		{geminiFilms, `{"durationSeconds":4,"sampleCount":2,"parameters":[]}`, film(8, 1, "720p")},
		{dashScopeFilms, `{"input":{"duration":1},"parameters":{"duration":10,"resolution":"720P"}}`, film(10, 1, "720P")},
		{arkFilms, `{"duration":-1}`, film(15, 1, "720p")},
		{arkFilms, `{"duration":12,"frames":57}`, film(3, 1, "720p")},
		{falOrders, `{"duration":"6s"}`, film(6, 1, "")},
		{falOrders, `{"duration":"auto"}`, film(8, 1, "")},
		{predictions, `{"input":{"duration":5},"duration":60}`, film(5, 1, "")},
		{spokenInput, `{"input":"héllo\n","text":"x"}`, usage.RequestedUnits{Characters: 6, Count: 1}},
		{spokenText, `{"input":"x","text":"héllo\n"}`, usage.RequestedUnits{Characters: 6, Count: 1}},
		{searchAsked, `{"web_search_options":{}}`, usage.RequestedUnits{Search: true}},
		{searchAsked, `{"web_search_options":null}`, usage.RequestedUnits{}},
		{nil, `{"seconds":8}`, usage.RequestedUnits{}},
		{openAIPictures, `{}`, usage.RequestedUnits{Count: 1, Size: "1024x1024", Quality: "standard"}},
		{openAIPictures, `{"size":"1792x1024","resolution":"1x1","quality":"hd","n":3}`, usage.RequestedUnits{Count: 3, Size: "1792x1024", Quality: "hd"}},
		{togetherPictures, `{"size":"1x1","width":2048}`, usage.RequestedUnits{Count: 1, Size: "2048x1024"}},
	} {
		fields, err := reqscan.Scan([]byte(tt.body), names)
		if err != nil {
			t.Fatal(err)
		}
		kind := modelgate.Video
		if tt.order == openAIPictures || tt.order == togetherPictures {
			kind = modelgate.Image
		}
		got, err := tt.order.read(&Request{Fields: fields}, kind)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
			t.Errorf("%s asks (-want +got), %v\n%s", tt.body, err, diff)
		}
	}
}

// A quantity that no provider can make is refused, and so is one that is given
// twice.
func TestOrderRefuses(t *testing.T) {
	t.Parallel()
	names := reqscan.NewNames(OrderNames()...)
	for _, tt := range []struct {
		order *Order
		body  string
	}{
		{openAIFilms, `{"seconds":0}`},
		{openAIFilms, `{"seconds":"0.000001"}`},
		{openAIFilms, `{"seconds":-4}`},
		{openAIFilms, `{"seconds":"5s"}`},
		{openAIFilms, `{"seconds":1e300}`},
		{openAIFilms, `{"seconds":"NaN"}`},
		{openAIFilms, `{"seconds":[8]}`},
		{openAIFilms, `{"seconds":true}`},
		{geminiFilms, `{"parameters":{"durationSeconds":4,"durationSeconds":8}}`},
		{geminiFilms, `{"parameters":{"DurationSeconds":4}}`},
		{geminiFilms, `{"parameters":{"sampleCount":0}}`},
		{openAIPictures, `{"n":0}`},
		{openAIPictures, `{"n":1.5}`},
		{openAIPictures, `{"n":"x"}`},
		{togetherPictures, `{"width":1}`},
		{arkFilms, `{"frames":0}`},
	} {
		fields, err := reqscan.Scan([]byte(tt.body), names)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tt.order.read(&Request{Fields: fields}, modelgate.Video); err == nil {
			t.Errorf("%s asks for %+v", tt.body, got)
		}
	}
}

func TestOrderByForm(t *testing.T) {
	t.Parallel()
	body := formPart("8", partName("seconds")) + formPart("1280x720", partName("size")) + formEnd
	form, err := reqscan.ScanForm(formKind, []byte(body), reqscan.NewNames(OrderNames()...))
	if err != nil {
		t.Fatal(err)
	}
	got, err := openAIFilms.read(&Request{Form: form}, modelgate.Video)
	want := usage.RequestedUnits{Seconds: 8_000_000, Size: "1280x720", Count: 1}
	if got != want || err != nil {
		t.Errorf("asks %+v, %v, want %+v", got, err, want)
	}
}
