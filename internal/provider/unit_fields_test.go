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
	names := reqscan.NewNames(UnitFieldNames()...)
	film := func(seconds, count int64, size string) usage.RequestedUnits {
		return usage.RequestedUnits{Seconds: seconds * 1e6, Count: count, Size: size}
	}
	for _, tt := range []struct {
		order *UnitFields
		body  string
		want  usage.RequestedUnits
	}{
		{openAIVideos, `{}`, film(4, 1, "720x1280")},
		{openAIVideos, `{"seconds":"8","size":"1280x720"}`, film(8, 1, "1280x720")},
		{openAIVideos, `{"seconds":7.2}`, film(8, 1, "720x1280")},
		{openAIVideos, `{"seconds":null,"duration":12,"n":7,"resolution":"4k"}`, film(4, 1, "720x1280")},
		{geminiVideos, `{"parameters":{"durationSeconds":4,"sampleCount":2,"resolution":"1080p"}}`, film(4, 2, "1080p")},
		{geminiVideos, `{"durationSeconds":4,"sampleCount":2,"parameters":[]}`, film(8, 1, "720p")},
		{geminiVideos, `{"parameters":{"generateAudio":false}}`, usage.RequestedUnits{Seconds: 8e6, Count: 1, Size: "720p", Audio: "false"}},
		{arkVideos, `{"generate_audio":true}`, usage.RequestedUnits{Seconds: 5e6, Count: 1, Size: "720p", Audio: "true"}},
		{dashScopeVideos, `{"input":{"duration":1},"parameters":{"duration":10,"resolution":"720P"}}`, film(10, 1, "720P")},
		{arkVideos, `{"duration":-1}`, film(15, 1, "720p")},
		{arkVideos, `{"duration":12,"frames":57}`, film(3, 1, "720p")},
		{falUnits, `{"duration":"6s"}`, film(6, 1, "")},
		{falUnits, `{"duration":"auto"}`, film(8, 1, "")},
		{predictions, `{"input":{"duration":5},"duration":60}`, film(5, 1, "")},
		{speechInput, `{"input":"héllo\n","text":"x"}`, usage.RequestedUnits{Characters: 6, Count: 1}},
		{speechText, `{"input":"x","text":"héllo\n"}`, usage.RequestedUnits{Characters: 6, Count: 1}},
		{webSearch, `{"web_search_options":{}}`, usage.RequestedUnits{Search: true}},
		{webSearch, `{"web_search_options":null}`, usage.RequestedUnits{}},
		{nil, `{"seconds":8}`, usage.RequestedUnits{}},
		{openAIImages, `{}`, usage.RequestedUnits{Count: 1, Size: "1024x1024", Quality: "standard"}},
		{openAIImages, `{"size":"1792x1024","resolution":"1x1","quality":"hd","n":3}`, usage.RequestedUnits{Count: 3, Size: "1792x1024", Quality: "hd"}},
		{togetherImages, `{"size":"1x1","width":2048}`, usage.RequestedUnits{Count: 1, Size: "2048x1024"}},
	} {
		fields, err := reqscan.Scan([]byte(tt.body), names)
		if err != nil {
			t.Fatal(err)
		}
		kind := modelgate.Video
		if tt.order == openAIImages || tt.order == togetherImages {
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
	names := reqscan.NewNames(UnitFieldNames()...)
	for _, tt := range []struct {
		order *UnitFields
		body  string
	}{
		{openAIVideos, `{"seconds":0}`},
		{openAIVideos, `{"seconds":"0.000001"}`},
		{openAIVideos, `{"seconds":-4}`},
		{openAIVideos, `{"seconds":"5s"}`},
		{openAIVideos, `{"seconds":1e300}`},
		{openAIVideos, `{"seconds":"NaN"}`},
		{openAIVideos, `{"seconds":[8]}`},
		{openAIVideos, `{"seconds":true}`},
		{geminiVideos, `{"parameters":{"durationSeconds":4,"durationSeconds":8}}`},
		{geminiVideos, `{"parameters":{"DurationSeconds":4}}`},
		{geminiVideos, `{"parameters":{"sampleCount":0}}`},
		{openAIImages, `{"n":0}`},
		{openAIImages, `{"n":1.5}`},
		{openAIImages, `{"n":"x"}`},
		{togetherImages, `{"width":1}`},
		{arkVideos, `{"frames":0}`},
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
	form, err := reqscan.ScanForm(formKind, []byte(body), reqscan.NewNames(UnitFieldNames()...))
	if err != nil {
		t.Fatal(err)
	}
	got, err := openAIVideos.read(&Request{Form: form}, modelgate.Video)
	want := usage.RequestedUnits{Seconds: 8_000_000, Size: "1280x720", Count: 1}
	if got != want || err != nil {
		t.Errorf("asks %+v, %v, want %+v", got, err, want)
	}
}
