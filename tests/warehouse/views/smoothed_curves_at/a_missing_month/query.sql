from smoothed_curves_at(3);
