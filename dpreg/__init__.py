"""Differentially private variable selection and linear regression."""
