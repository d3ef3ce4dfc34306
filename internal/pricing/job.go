package pricing

import (
	"modelgate"
)

// FinishJob is what the news make of a pending job; false where they end
// nothing.
//
// A job that has succeeded costs what the provider says it used, in what it
// does not say what was asked for, at the price of its creation; one that nothing prices costs what
// the provider charged. One that ended otherwise costs nothing, unless the
// provider states a charge. At its deadline the provisional cost becomes the
// final one, because the provider may bill it.
func FinishJob(j *modelgate.Job, n modelgate.JobNews) (modelgate.JobFinal, bool) {
	f, ok := j.Next(n.Event)
	if !ok || n.Event == modelgate.JobLost {
		return f, ok
	}
	price, err := FromSnapshot(j.Price)
	if err != nil {
		price = nil
	}
	switch {
	case n.Event == modelgate.JobOverdue:
		f.Usage, f.Cost = j.Usage, j.Provisional
		_, _, f.PriceLabel = Cost(price, &f.Usage, j.CreatedAt)
		return f, true
	case n.Event == modelgate.JobSucceeds:
		f.Usage = n.Usage.Or(j.Usage)
		setLength(&f.Usage, n)
		setUnits(&f.Usage, price, n.Units)
	case n.Stated:
		f.Usage = n.Usage
	case !n.Charged:
		return f, true
	}
	inRange := f.Usage.Clamp()
	var priced Coverage
	f.Cost, priced, f.PriceLabel = Cost(price, &f.Usage, j.CreatedAt)
	unknown := f.Cost == 0 && !f.Usage.Counts()
	if n.Charged && (priced == Unpriced || unknown || !n.Stated && n.Event != modelgate.JobSucceeds) {
		f.Cost, priced, f.PriceLabel = max(n.Charge, 0), FullyPriced, modelgate.StatedLabel
		unknown = false
	}
	if n.Event == modelgate.JobSucceeds && (unknown || priced != FullyPriced || !inRange) {
		f.ParseStatus = modelgate.ParsePartial
	}
	return f, true
}

// setLength takes over what the news say of the length and the number of the
// films that were made, where they do not say how many seconds were used.
func setLength(u *modelgate.Usage, n modelgate.JobNews) {
	switch {
	case n.Usage.Seconds > 0:
	case n.Length > 0:
		u.Seconds = n.Length
	case n.Videos > 0 && n.Videos < max(u.Videos, 1):
		u.Seconds = u.Seconds / u.Videos * n.Videos
		u.Videos = n.Videos
	}
}

// setUnits sets what was used in the one unit that the price is for; where it
// is for several, nobody can say which of them the provider means.
func setUnits(u *modelgate.Usage, price *modelgate.Price, millionths int64) {
	if price == nil || millionths <= 0 {
		return
	}
	unit, ok := price.Base.Sole()
	switch {
	case !ok:
	case unit == modelgate.UnitSecond:
		u.Seconds = millionths
	case unit == modelgate.UnitMinute && millionths <= modelgate.MaxQuantity:
		u.Seconds = millionths * 60
	case unit == modelgate.UnitMegapixel:
		u.Megapixels = millionths
	case unit == modelgate.UnitImage && millionths%1_000_000 == 0:
		u.Images = millionths / 1_000_000
	case unit == modelgate.UnitCharacters && millionths%1_000_000 == 0:
		u.Characters = millionths / 1_000_000
	}
}
